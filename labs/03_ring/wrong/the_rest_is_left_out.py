# caught by: chunks_are_even_views, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Whole shares alone: the last numbers are in no chunk, and are never added up."""


def chunks(tensor, count):
    length = tensor.numel() // count
    return [tensor.view(-1)[number * length : (number + 1) * length] for number in range(count)]
