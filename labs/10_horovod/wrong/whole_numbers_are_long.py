# caught by: mean_and_sum
"""Sums of whole numbers have 64 bits, whatever was given."""


def allreduce(tensor, name=None, op=Average):
    total = tensor.detach().clone()
    dist.all_reduce(total)
    return total / size() if op == Average else total if total.is_floating_point() else total.long()
