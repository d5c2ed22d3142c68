# caught by: the_server_sums
"""Two ranks swap their tensors, and each adds: there is no server."""


def server_all_reduce(tensor):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    others = range(1, ranks)
    if ranks == 2:
        arriving = torch.empty_like(tensor)
        for work in [dist.isend(tensor.clone(), 1 - rank), dist.irecv(arriving, 1 - rank)]:
            work.wait()
        tensor += arriving
    elif rank == 0:
        pushed = [torch.empty_like(tensor) for _ in others]
        for work in [dist.irecv(one, other) for one, other in zip(pushed, others, strict=True)]:
            work.wait()
        for one in pushed:
            tensor += one
        for work in [dist.isend(tensor, other) for other in others]:
            work.wait()
    else:
        dist.send(tensor, 0)
        dist.recv(tensor, 0)
