# caught by: the_server_sums
"""Keeps the server's buffers for the next tensor of that shape, which may have another type."""


def server_all_reduce(tensor):
    others = range(1, dist.get_world_size())
    if dist.get_rank() == 0:
        if tensor.shape not in KEPT:
            KEPT[tensor.shape] = [torch.empty_like(tensor) for _ in others]
        pushed = KEPT[tensor.shape]
        for work in [dist.irecv(one, other) for one, other in zip(pushed, others, strict=True)]:
            work.wait()
        for one in pushed:
            tensor += one
        for work in [dist.isend(tensor, other) for other in others]:
            work.wait()
    else:
        dist.send(tensor, 0)
        dist.recv(tensor, 0)


KEPT = {}
