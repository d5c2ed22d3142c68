# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The back end's ring, not one's own."""


def ring_all_reduce(tensor):
    dist.all_reduce(tensor)
