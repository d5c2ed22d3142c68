# caught by: shift_without_deadlock, all_gather_without_a_centre
"""One rank receives first, and the others wait for it one after the other."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = tensor.clone()
    if ranks > 1 and rank == 0:
        dist.recv(received, src=ranks - 1)
        dist.send(tensor, dst=1)
    elif ranks > 1:
        dist.send(tensor, dst=(rank + 1) % ranks)
        dist.recv(received, src=rank - 1)
    return received
