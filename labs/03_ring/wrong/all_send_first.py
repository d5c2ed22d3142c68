# caught by: each_rank_sums_its_chunk, every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Every rank waits in send for a neighbour that is waiting in send."""


def _shift(outgoing, incoming):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    dist.send(outgoing, (rank + 1) % ranks)
    dist.recv(incoming, (rank - 1) % ranks)
