# caught by: steps_as_one_process, exchanges_beside_backward, one_exchange_for_each_update, the_training_script
"""The optimizer as it was: every process trains for itself."""


def DistributedOptimizer(optimizer, named_parameters=None, backward_passes_per_step=1):
    optimizer.synchronize = lambda: None
    optimizer.skip_synchronize = contextmanager(lambda: iter([None]))
    return optimizer
