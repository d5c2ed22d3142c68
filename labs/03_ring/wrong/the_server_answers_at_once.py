# caught by: the_server_sums
"""Each worker gets the sum of those that came before it."""


def server_all_reduce(tensor):
    if dist.get_rank() > 0:
        dist.send(tensor, 0)
        dist.recv(tensor, 0)
        return
    for other in range(1, dist.get_world_size()):
        pushed = torch.empty_like(tensor)
        dist.recv(pushed, other)
        tensor += pushed
        dist.send(tensor, other)
