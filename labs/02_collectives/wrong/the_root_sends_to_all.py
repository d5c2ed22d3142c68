# caught by: broadcast_in_few_rounds, all_reduce_alike_to_the_last_bit
"""The root's link carries everything: N - 1 messages' time."""


def broadcast(tensor, root):
    if dist.get_rank() == root:
        _all_at_once(sends={rank: tensor for rank in range(dist.get_world_size()) if rank != root})
    else:
        dist.recv(tensor, src=root)
