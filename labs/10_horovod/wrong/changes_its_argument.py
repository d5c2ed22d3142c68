# caught by: mean_and_sum
"""Sums into the tensor that it was given."""


def allreduce(tensor, name=None, op=Average):
    dist.all_reduce(tensor)
    return tensor / size() if op == Average else tensor
