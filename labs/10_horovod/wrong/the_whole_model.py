# caught by: one_exchange_for_each_update
"""Exchanges all named parameters, those too that another optimizer trains."""


def DistributedOptimizer(optimizer, named_parameters=None, backward_passes_per_step=1):
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (Distributed, kind), {})
    optimizer.distribute(backward_passes_per_step)
    there = set(optimizer.queue)
    for _, parameter in named_parameters:
        if parameter.requires_grad and parameter not in there:
            optimizer.queue.append(parameter)
            parameter.register_post_accumulate_grad_hook(optimizer.ready)
    optimizer.begin()
    return optimizer
