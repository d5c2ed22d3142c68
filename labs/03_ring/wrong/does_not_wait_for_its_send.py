# caught by: each_rank_sums_its_chunk, every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Returns while its last chunk is on its way, and the caller goes on to change it."""


def _shift(outgoing, incoming):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    ON_THEIR_WAY.append(dist.isend(outgoing, (rank + 1) % ranks))
    dist.recv(incoming, (rank - 1) % ranks)


ON_THEIR_WAY = []
