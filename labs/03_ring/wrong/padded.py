# caught by: chunks_are_even_views, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Filled up with noughts until the chunks are equal: more bytes, and numbers in a tensor of their own."""


def chunks(tensor, count):
    flat = tensor.view(-1)
    filled = torch.cat([flat, flat.new_zeros(-len(flat) % count)])
    return list(filled.view(count, -1))
