# caught by: samples_disjoint_complete_and_even
"""As DistributedSampler does it: shares of one size, some samples twice."""


def own_samples(count):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    filled = list(range(count)) + list(range(-count % ranks))
    return filled[rank::ranks]
