# caught by: samples_disjoint_complete_and_even
"""Complete, but everybody waits for the last rank."""


def own_samples(count):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    share = count // ranks
    return list(range(rank * share, count if rank == ranks - 1 else (rank + 1) * share))
