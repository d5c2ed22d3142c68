# caught by: reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Every rank has it and all but one throw it away: log2 N times the bytes, and more."""


def reduce(tensor, root):
    total = sum(all_gather(tensor))
    return total if dist.get_rank() == root else None
