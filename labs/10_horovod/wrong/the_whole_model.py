# caught by: one_exchange_for_each_update
"""Exchanges all named parameters, those too that another optimizer trains."""

Given = DistributedOptimizer


def DistributedOptimizer(optimizer, named_parameters=None, *given, **options):
    optimizer = Given(optimizer, None, *given, **options)
    there = set(optimizer.queue)
    for _, parameter in named_parameters:
        if parameter.requires_grad and parameter not in there:
            optimizer.queue.append(parameter)
            parameter.register_post_accumulate_grad_hook(optimizer.ready)
    optimizer.begin()
    return optimizer
