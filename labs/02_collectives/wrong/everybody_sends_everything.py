# caught by: broadcast_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Each rank takes the root's from a list of all."""


def broadcast(tensor, root):
    tensor.copy_(all_gather(tensor)[root])
