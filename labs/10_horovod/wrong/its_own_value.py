# caught by: mean_and_sum, the_training_script
"""Every rank tells its own test result."""


def allreduce(tensor, name=None, op=Average):
    return tensor.clone()
