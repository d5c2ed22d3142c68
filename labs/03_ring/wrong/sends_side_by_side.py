# caught by: every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""A rank hands on each chunk as soon as it comes, also while its last one is still on its way."""


def all_gather(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    order = [(rank - 1 - turn) % ranks for turn in range(ranks - 1)]
    coming = [dist.irecv(parts[number], (rank - 1) % ranks) for number in order]
    going = [dist.isend(parts[rank], (rank + 1) % ranks)] if ranks > 1 else []
    for turn, number in enumerate(order):
        coming[turn].wait()
        if turn < ranks - 2:
            going.append(dist.isend(parts[number], (rank + 1) % ranks))
    for one in going:
        one.wait()
