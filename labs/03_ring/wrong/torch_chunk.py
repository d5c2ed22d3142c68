# caught by: chunks_are_even_views, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""torch.chunk rounds the length up: the last chunks are short, or missing."""


def chunks(tensor, count):
    return list(tensor.view(-1).chunk(count))
