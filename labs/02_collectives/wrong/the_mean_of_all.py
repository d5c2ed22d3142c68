# caught by: reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Not what was asked for."""


def reduce(tensor, root):
    tensors = all_gather(tensor)
    return sum(tensors) / len(tensors) if dist.get_rank() == root else None
