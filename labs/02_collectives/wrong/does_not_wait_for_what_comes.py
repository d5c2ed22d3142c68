# caught by: shift_without_deadlock, all_gather_without_a_centre
"""Returns a tensor that is filled later, or never."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = tensor.clone()
    if ranks > 1:
        request = dist.isend(tensor, dst=(rank + 1) % ranks)
        dist.irecv(received, src=(rank - 1) % ranks)
        request.wait()
    return received
