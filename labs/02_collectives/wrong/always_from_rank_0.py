# caught by: broadcast_in_few_rounds
"""The root's tensor is overwritten."""


def broadcast(tensor, root):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for distance in _doubling(ranks):
        if rank < distance and rank + distance < ranks:
            dist.send(tensor, dst=rank + distance)
        elif distance <= rank < 2 * distance:
            dist.recv(tensor, src=rank - distance)
