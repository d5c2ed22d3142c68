# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Each rank has the sum of its own chunk alone."""


def ring_all_reduce(tensor):
    reduce_scatter(chunks(tensor, dist.get_world_size()))
