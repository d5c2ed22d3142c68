# caught by: one_start, training_as_one_process
"""What is not trained was random all the same."""


def same_parameters(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.requires_grad or tensor not in set(model.parameters()):
            dist.broadcast(tensor.data, src=0)
