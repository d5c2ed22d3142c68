# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Divides by the ranks, which nobody asked for."""


def ring_all_reduce(tensor):
    parts = chunks(tensor, dist.get_world_size())
    reduce_scatter(parts)
    all_gather(parts)
    tensor.copy_(tensor / dist.get_world_size())
