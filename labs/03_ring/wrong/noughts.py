# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""All ranks agree, and on nothing."""


def ring_all_reduce(tensor):
    tensor.zero_()
