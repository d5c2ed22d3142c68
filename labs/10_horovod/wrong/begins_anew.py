# caught by: steps_as_one_process, the_training_script
"""A new optimizer of the same class: the state of the given one is lost."""

Given = DistributedOptimizer


def DistributedOptimizer(optimizer, *given, **options):
    return Given(type(optimizer)(optimizer.param_groups), *given, **options)
