# caught by: mean_and_sum, the_training_script
"""Forgets to divide."""


def allreduce(tensor, name=None, op=Average):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
