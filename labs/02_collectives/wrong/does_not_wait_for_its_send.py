# caught by: shift_without_deadlock, all_gather_without_a_centre
"""Right until the caller changes its tensor while it is still on its way."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = tensor.clone()
    if ranks > 1:
        ON_THEIR_WAY.append(dist.isend(tensor, dst=(rank + 1) % ranks))
        dist.recv(received, src=(rank - 1) % ranks)
    return received


ON_THEIR_WAY = []
