# caught by: reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Everything arrives over the root's link: N - 1 messages' time."""


def reduce(tensor, root):
    tensors = gather(tensor, root)
    return None if tensors is None else sum(tensors)
