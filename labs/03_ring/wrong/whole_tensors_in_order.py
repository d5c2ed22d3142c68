# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""As many messages as a ring's, to right neighbours alone, all ranks with one sum; but each carries everything."""


def ring_all_reduce(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        before = torch.empty_like(tensor)
        dist.recv(before, rank - 1)
        tensor += before
    if ranks > 1:
        dist.send(tensor, (rank + 1) % ranks) if rank == 0 else None
        sending = dist.isend(tensor.clone(), (rank + 1) % ranks) if rank > 0 else None
        if rank < ranks - 1:
            dist.recv(tensor, (rank - 1) % ranks)
            if rank < ranks - 2:
                dist.send(tensor, rank + 1)
        if sending is not None:
            sending.wait()
