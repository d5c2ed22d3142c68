# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The sum is returned, and the tensor that was given stays as it was."""


def ring_all_reduce(tensor):
    total = tensor.clone()
    parts = chunks(total, dist.get_world_size())
    reduce_scatter(parts)
    all_gather(parts)
    return total
