# caught by: each_rank_sums_its_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Rank r ends with the sum of chunk r + 1, and gathering hands on chunk r."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        sum_so_far = parts[(rank - 1 - turn) % ranks]
        arriving = torch.empty_like(sum_so_far)
        _shift(parts[(rank - turn) % ranks], arriving)
        sum_so_far += arriving
