# caught by: samples_disjoint_complete_and_even
"""Keeps its share of the first data set for every later one."""


def own_samples(count):
    if not KEPT:
        KEPT.append(list(range(dist.get_rank(), count, dist.get_world_size())))
    return [sample for sample in KEPT[0] if sample < count]


KEPT = []
