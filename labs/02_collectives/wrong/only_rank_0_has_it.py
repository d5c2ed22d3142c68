# caught by: all_reduce_alike_to_the_last_bit
"""The other ranks keep what they had."""


def all_reduce(tensor):
    total = reduce(tensor, root=0)
    if total is not None:
        tensor.copy_(total)
