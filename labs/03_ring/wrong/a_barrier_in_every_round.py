# caught by: each_rank_sums_its_chunk, every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The rounds are kept apart by a collective: the slowest of all sets the pace of each round."""


def _shift(outgoing, incoming):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    sending = dist.isend(outgoing, (rank + 1) % ranks)
    dist.recv(incoming, (rank - 1) % ranks)
    sending.wait()
    dist.barrier()
