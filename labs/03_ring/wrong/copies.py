# caught by: chunks_are_even_views, the_ring_sums
"""The sums go into copies, and the tensor stays as it was."""


def chunks(tensor, count):
    return [part.clone() for part in tensor.flatten().tensor_split(count)]
