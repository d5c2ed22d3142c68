# caught by: each_rank_sums_its_chunk, every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""The ring turns the other way: the sums are right, and the wrong neighbour is sent to."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        sum_so_far = parts[(rank + 2 + turn) % ranks]
        arriving = torch.empty_like(sum_so_far)
        _to_the_left(parts[(rank + 1 + turn) % ranks], arriving)
        sum_so_far += arriving


def all_gather(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        _to_the_left(parts[(rank + turn) % ranks], parts[(rank + turn + 1) % ranks])


def _to_the_left(outgoing, incoming):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    sending = dist.isend(outgoing, (rank - 1) % ranks)
    dist.recv(incoming, (rank + 1) % ranks)
    sending.wait()
