# caught by: shift_without_deadlock, all_gather_without_a_centre
"""Sends to the rank before."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = tensor.clone()
    if ranks > 1:
        _all_at_once(sends={(rank - 1) % ranks: tensor}, receives={(rank + 1) % ranks: received})
    return received
