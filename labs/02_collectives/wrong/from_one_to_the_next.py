# caught by: broadcast_in_few_rounds, all_reduce_alike_to_the_last_bit
"""A chain: the last rank waits for N - 1 messages."""


def broadcast(tensor, root):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % ranks
    if place > 0:
        dist.recv(tensor, src=(rank - 1) % ranks)
    if place < ranks - 1:
        dist.send(tensor, dst=(rank + 1) % ranks)
