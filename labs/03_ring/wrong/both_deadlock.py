# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring, the_server_sums
"""Everybody receives from the server, and the server from everybody."""


def ring_all_reduce(tensor):
    server_all_reduce(tensor)


def server_all_reduce(tensor):
    arriving = torch.empty_like(tensor)
    if dist.get_rank() > 0:
        dist.recv(arriving, 0)
        dist.send(tensor, 0)
    else:
        for other in range(1, dist.get_world_size()):
            dist.recv(arriving, other)
            tensor += arriving
