# caught by: chunks_are_even_views, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The sums go into copies, and the tensor stays as it was."""


def chunks(tensor, count):
    return [part.clone() for part in tensor.flatten().tensor_split(count)]
