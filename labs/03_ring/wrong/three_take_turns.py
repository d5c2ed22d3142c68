# caught by: each_rank_sums_its_chunk, the_fewest_bytes, the_time_of_a_ring
"""With three ranks the first one waits for its chunk before it sends."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        mine = parts[(rank - 1 - turn) % ranks]
        sum_so_far = parts[(rank - 2 - turn) % ranks]
        arriving = torch.empty_like(sum_so_far)
        if ranks == 3 and rank == 0:
            dist.recv(arriving, ranks - 1)
            dist.send(mine, 1)
        else:
            _shift(mine, arriving)
        sum_so_far += arriving
