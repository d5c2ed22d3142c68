# caught by: shift_without_deadlock, all_gather_without_a_centre
"""No deadlock, but two messages' time, and three where the number of ranks is odd."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = tensor.clone()
    if ranks > 1 and rank % 2 == 0:
        dist.send(tensor, dst=(rank + 1) % ranks)
        dist.recv(received, src=(rank - 1) % ranks)
    elif ranks > 1:
        dist.recv(received, src=(rank - 1) % ranks)
        dist.send(tensor, dst=(rank + 1) % ranks)
    return received
