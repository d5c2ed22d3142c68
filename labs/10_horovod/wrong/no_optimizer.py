# caught by: steps_as_one_process, the_training_script
"""A wrapper that calls an optimizer is none: a scheduler refuses it."""

Given = DistributedOptimizer


class Wrapper:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def __getattr__(self, name):
        return getattr(self.optimizer, name)


def DistributedOptimizer(*given, **options):
    return Wrapper(Given(*given, **options))
