# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Equal parts, and the last rank has what is left."""


def own_part(size):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    each = size // ranks
    return slice(rank * each, size if rank == ranks - 1 else (rank + 1) * each)
