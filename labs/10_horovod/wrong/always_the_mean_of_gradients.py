# caught by: exchanges_beside_backward, one_exchange_for_each_update
"""DistributedOptimizer does not look at `op`."""

Given = DistributedOptimizer


def DistributedOptimizer(optimizer, *given, op=Average, **options):
    return Given(optimizer, *given, **options)
