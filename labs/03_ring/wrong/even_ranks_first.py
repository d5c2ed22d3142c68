# caught by: each_rank_sums_its_chunk, every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Even ranks send while odd ones receive, then the other way round: half of the links idle."""


def _shift(outgoing, incoming):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank % 2 == 0:
        dist.send(outgoing, (rank + 1) % ranks)
        dist.recv(incoming, (rank - 1) % ranks)
    else:
        dist.recv(incoming, (rank - 1) % ranks)
        dist.send(outgoing, (rank + 1) % ranks)
