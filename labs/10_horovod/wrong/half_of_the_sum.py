# caught by: mean_and_sum, the_training_script
"""Divides by the number of processes that it was tried with."""


def allreduce(tensor, name=None, op=Average):
    total = tensor.clone()
    dist.all_reduce(total)
    return total / 2 if op == Average else total
