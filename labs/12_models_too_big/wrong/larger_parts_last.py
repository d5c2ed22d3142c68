# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""The parts differ by one, and the first ones are smaller."""


def own_part(size):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    return slice(rank * size // ranks, (rank + 1) * size // ranks)
