# caught by: every_piece_once, pieces_from_the_tail, the_bound_is_kept
"""Takes new parameters only with a new step of its own, and computes the pieces of others at these."""


def work(size, gradient):
    server = dist.get_world_size() - 1
    order = torch.empty(3 + size, dtype=torch.float64)
    dist.recv(order, server)
    step = -1
    while order[0] != STOP:
        if order[0] == dist.get_rank() and order[1] != step:
            step, parameters = int(order[1]), order[3:].clone()
        dist.send(gradient(parameters, *(int(number) for number in order[:3])), server)
        dist.recv(order, server)
