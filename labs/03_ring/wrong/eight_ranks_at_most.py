# caught by: the_time_of_a_ring, the_server_sums
"""Knows the ring of up to eight ranks."""


def ring_all_reduce(tensor):
    if dist.get_world_size() > 8:
        raise ValueError("too many ranks")
    parts = chunks(tensor, dist.get_world_size())
    reduce_scatter(parts)
    all_gather(parts)


def server_all_reduce(tensor):
    others = range(1, min(dist.get_world_size(), 8))
    if dist.get_rank() == 0:
        pushed = [torch.empty_like(tensor) for _ in others]
        for work in [dist.irecv(one, other) for one, other in zip(pushed, others, strict=True)]:
            work.wait()
        for one in pushed:
            tensor += one
        for work in [dist.isend(tensor, other) for other in others]:
            work.wait()
    elif dist.get_rank() in others:
        dist.send(tensor, 0)
        dist.recv(tensor, 0)
