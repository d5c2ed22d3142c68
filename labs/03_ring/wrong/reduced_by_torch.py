# caught by: each_rank_sums_its_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The collective of torch.distributed adds up, and the ring only gathers."""


def reduce_scatter(parts):
    for number, part in enumerate(parts):
        dist.reduce(part, dst=number)
