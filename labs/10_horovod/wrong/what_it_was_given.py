# caught by: steps_as_one_process, exchanges_beside_backward, one_exchange_for_each_update, the_training_script
"""The optimizer as it was: every process trains for itself."""


def DistributedOptimizer(optimizer, *given, **options):
    optimizer.synchronize = lambda: None
    optimizer.skip_synchronize = contextmanager(lambda: iter([None]))
    return optimizer
