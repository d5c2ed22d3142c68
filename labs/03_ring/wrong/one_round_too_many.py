# caught by: every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The last round brings what a rank has already, and a rank on its own sends to itself."""


def all_gather(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks):
        arriving = torch.empty_like(parts[(rank - turn - 1) % ranks])
        _shift(parts[(rank - turn) % ranks], arriving)
        parts[(rank - turn - 1) % ranks].copy_(arriving)
