# caught by: every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""What came in is not handed on: only the right neighbour ever has it."""


def all_gather(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        arriving = torch.empty_like(max(parts, key=len))
        _shift(parts[rank], arriving)
        part = parts[(rank - turn - 1) % ranks]
        part.copy_(arriving[: len(part)])
