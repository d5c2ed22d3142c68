# caught by: one_start, training_as_one_process
"""Alike on every rank, and nobody's start: a mean of random weights is small."""


def same_parameters(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        total = tensor.detach().double()
        dist.all_reduce(total)
        tensor.data.copy_(total / dist.get_world_size())
