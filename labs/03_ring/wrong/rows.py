# caught by: chunks_are_even_views, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Cuts along the first dimension: chunks are not flat, and a tensor without dimensions cannot be cut."""


def chunks(tensor, count):
    return list(tensor.tensor_split(count))
