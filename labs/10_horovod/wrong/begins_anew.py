# caught by: steps_as_one_process, the_training_script
"""A new optimizer of the same class: the state of the given one is lost."""


def DistributedOptimizer(optimizer, named_parameters=None, backward_passes_per_step=1):
    kind = type(optimizer)
    made = type(kind.__name__, (Distributed, kind), {})(optimizer.param_groups)
    made.distribute(backward_passes_per_step)
    return made
