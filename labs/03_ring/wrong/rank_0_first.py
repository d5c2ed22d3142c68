# caught by: each_rank_sums_its_chunk, every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Rank 0 sends first and the others receive first: a chunk waits for all the ranks before it, one by one."""


def _shift(outgoing, incoming):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        dist.send(outgoing, (rank + 1) % ranks)
    arrived = torch.empty_like(incoming)
    dist.recv(arrived, (rank - 1) % ranks)
    if rank > 0:
        dist.send(outgoing, (rank + 1) % ranks)
    incoming.copy_(arrived)
