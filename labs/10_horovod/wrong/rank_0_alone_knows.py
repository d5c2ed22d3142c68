# caught by: mean_and_sum, the_training_script
"""A reduce: only rank 0 prints, so only rank 0 is told."""


def allreduce(tensor, name=None, op=Average):
    total = tensor.clone()
    dist.reduce(total, dst=0)
    return total / size() if op == Average else total
