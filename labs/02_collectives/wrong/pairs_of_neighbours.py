# caught by: shift_without_deadlock, all_gather_without_a_centre
"""Swaps within pairs: wrong for more than two ranks, and nobody is there for the last of an odd number."""


def shift(tensor):
    partner, received = dist.get_rank() ^ 1, tensor.clone()
    if dist.get_world_size() > 1:
        _all_at_once(sends={partner: tensor}, receives={partner: received})
    return received
