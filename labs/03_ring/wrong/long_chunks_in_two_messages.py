# caught by: each_rank_sums_its_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Cuts a long chunk in two, and pays the latency twice."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        mine = parts[(rank - 1 - turn) % ranks]
        sum_so_far = parts[(rank - 2 - turn) % ranks]
        arriving = torch.empty_like(sum_so_far)
        pieces = 2 if max(part.numel() for part in parts) > 5000 else 1
        for give, take in zip(mine.tensor_split(pieces), arriving.tensor_split(pieces), strict=True):
            _shift(give, take)
        sum_so_far += arriving
