# caught by: shift_without_deadlock, all_gather_without_a_centre
"""A circle: every rank waits in send for a rank that waits in send."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = tensor.clone()
    if ranks > 1:
        dist.send(tensor, dst=(rank + 1) % ranks)
        dist.recv(received, src=(rank - 1) % ranks)
    return received
