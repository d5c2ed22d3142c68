# caught by: samples_disjoint_complete_and_even
"""Hands out the same list again, after its caller has used it up."""


def own_samples(count):
    if count not in KEPT:
        KEPT[count] = list(range(dist.get_rank(), count, dist.get_world_size()))
    return KEPT[count]


KEPT = {}
