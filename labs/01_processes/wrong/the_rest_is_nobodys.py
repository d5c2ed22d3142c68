# caught by: samples_disjoint_complete_and_even
"""Whole shares alone: the last samples are never seen."""


def own_samples(count):
    share = count // dist.get_world_size()
    return list(range(dist.get_rank() * share, (dist.get_rank() + 1) * share))
