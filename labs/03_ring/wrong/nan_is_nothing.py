# caught by: each_rank_sums_its_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Hides that a rank has diverged: counts its nan as 0."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        mine = parts[(rank - 1 - turn) % ranks]
        sum_so_far = parts[(rank - 2 - turn) % ranks]
        arriving = torch.empty_like(sum_so_far)
        _shift(mine, arriving)
        sum_so_far += torch.nan_to_num(arriving)
