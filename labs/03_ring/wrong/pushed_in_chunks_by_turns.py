# caught by: the_server_sums
"""Workers wait for each other's turns, number by number."""


def server_all_reduce(tensor):
    flat = tensor.view(-1)
    for part in flat.split(max(len(flat) // 8, 1)):
        for other in range(1, dist.get_world_size()):
            if dist.get_rank() == other:
                dist.send(part, 0)
            elif dist.get_rank() == 0:
                pushed = torch.empty_like(part)
                dist.recv(pushed, other)
                part += pushed
        if dist.get_rank() == 0:
            for other in range(1, dist.get_world_size()):
                dist.send(part, other)
        else:
            dist.recv(part, 0)
