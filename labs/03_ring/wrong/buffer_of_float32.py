# caught by: each_rank_sums_its_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""torch.empty(n) holds float32, whatever the chunk holds."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        sum_so_far = parts[(rank - 2 - turn) % ranks]
        arriving = torch.empty(len(sum_so_far))
        _shift(parts[(rank - 1 - turn) % ranks], arriving)
        sum_so_far += arriving.to(sum_so_far.dtype)
