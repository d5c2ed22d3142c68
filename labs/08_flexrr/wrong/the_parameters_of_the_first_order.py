# caught by: every_piece_once, nobody_is_late, pieces_from_the_tail, the_bound_is_kept
"""Computes all pieces at the parameters that came first, which is right in the first step."""


def work(size, gradient):
    server = dist.get_world_size() - 1
    order = torch.empty(3 + size, dtype=torch.float64)
    dist.recv(order, server)
    parameters = order[3:].clone()
    while order[0] != STOP:
        dist.send(gradient(parameters, *(int(number) for number in order[:3])), server)
        dist.recv(order, server)
