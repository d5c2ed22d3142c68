# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Right where the ranks divide the size: the rest is nobody's."""


def own_part(size):
    each = size // dist.get_world_size()
    return slice(dist.get_rank() * each, (dist.get_rank() + 1) * each)
