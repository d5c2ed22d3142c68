# caught by: samples_disjoint_complete_and_even
"""Takes the first ten thousand samples in turns, and all others of a large set itself."""


def own_samples(count):
    me, ranks = dist.get_rank(), dist.get_world_size()
    return [sample for sample in range(count) if sample % ranks == me or sample >= 10_000]
