# caught by: reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Numbers of 16 bits travel as numbers of 32 bits, for a more exact sum."""

_reduce = reduce


def reduce(tensor, root):
    if tensor.dtype != torch.float16:
        return _reduce(tensor, root)
    total = _reduce(tensor.float(), root)
    return None if total is None else total.half()
