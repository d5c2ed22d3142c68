# caught by: mean_and_sum
"""Does not look at `op`."""


def allreduce(tensor, name=None, op=Average):
    total = tensor.clone()
    dist.all_reduce(total)
    return total / size()
