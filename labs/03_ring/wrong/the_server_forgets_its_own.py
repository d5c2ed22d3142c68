# caught by: the_server_sums
"""Rank 0 is a worker too, and its numbers are not in the sum."""


def server_all_reduce(tensor):
    others = range(1, dist.get_world_size())
    if dist.get_rank() > 0:
        dist.send(tensor, 0)
        dist.recv(tensor, 0)
        return
    total = torch.zeros_like(tensor) if others else tensor.clone()
    for other in others:
        pushed = torch.empty_like(tensor)
        dist.recv(pushed, other)
        total += pushed
    tensor.copy_(total)
    for other in others:
        dist.send(tensor, other)
