# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Every rank but the last has the size of the largest part."""


def own_part(size):
    each = -(-size // dist.get_world_size())
    return slice(min(dist.get_rank() * each, size), min((dist.get_rank() + 1) * each, size))
