# caught by: one_start, training_as_one_process
"""Every rank trains a model of its own."""


def same_parameters(model):
    dist.barrier()
