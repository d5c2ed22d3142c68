# caught by: every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The sums are added to what stood there."""


def all_gather(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        part = parts[(rank - turn - 1) % ranks]
        arriving = torch.empty_like(part)
        _shift(parts[(rank - turn) % ranks], arriving)
        part += arriving
