# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The right messages at the right times, and what they bring is thrown away."""


def ring_all_reduce(tensor):
    parts = chunks(tensor.clone(), dist.get_world_size())
    reduce_scatter(parts)
    all_gather(parts)
    tensor *= dist.get_world_size()
