# caught by: every_piece_once, pieces_from_the_tail, the_bound_is_kept, time_to_finish
"""Computes the pieces of others as pieces of its own step."""


def work(size, gradient):
    server = dist.get_world_size() - 1
    order = torch.empty(3 + size, dtype=torch.float64)
    dist.recv(order, server)
    while order[0] != STOP:
        dist.send(gradient(order[3:], dist.get_rank(), int(order[1]), int(order[2])), server)
        dist.recv(order, server)
