# caught by: each_rank_sums_its_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""What comes in takes the place of what was there: one rank's numbers are left of each sum."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        _shift(parts[(rank - 1 - turn) % ranks], parts[(rank - 2 - turn) % ranks])
