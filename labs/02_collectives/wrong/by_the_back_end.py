# caught by: broadcast_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Calls what it should be."""


def broadcast(tensor, root):
    dist.broadcast(tensor, src=root)
