# caught by: the_server_sums
"""Rank 0 sums, and only rank 0 knows."""


def server_all_reduce(tensor):
    if dist.get_rank() > 0:
        dist.send(tensor, 0)
        return
    for other in range(1, dist.get_world_size()):
        pushed = torch.empty_like(tensor)
        dist.recv(pushed, other)
        tensor += pushed
