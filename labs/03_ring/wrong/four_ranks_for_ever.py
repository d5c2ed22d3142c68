# caught by: each_rank_sums_its_chunk, every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Three rounds each, whatever the number of ranks."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(3):
        sum_so_far = parts[(rank - 2 - turn) % ranks]
        arriving = torch.empty_like(sum_so_far)
        _shift(parts[(rank - 1 - turn) % ranks], arriving)
        sum_so_far += arriving


def all_gather(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(3):
        _shift(parts[(rank - turn) % ranks], parts[(rank - turn - 1) % ranks])
