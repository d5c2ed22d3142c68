# caught by: steps_as_one_process, the_training_script
"""A wrapper that calls an optimizer is none: a scheduler refuses it."""


class Wrapper:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def __getattr__(self, name):
        return getattr(self.optimizer, name)


def DistributedOptimizer(optimizer, named_parameters=None, backward_passes_per_step=1):
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (Distributed, kind), {})
    optimizer.distribute(backward_passes_per_step)
    return Wrapper(optimizer)
