# caught by: broadcast_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Sends to ranks that there are not."""


def broadcast(tensor, root):
    ranks = dist.get_world_size()
    place = (dist.get_rank() - root) % ranks
    for distance in _doubling(ranks):
        if place < distance:
            dist.send(tensor, dst=root ^ (place + distance))
        elif place < 2 * distance:
            dist.recv(tensor, src=root ^ (place - distance))
