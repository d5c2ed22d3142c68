# caught by: one_start, training_as_one_process
"""Puts new parameters into the model: the optimizer goes on with the old ones, and tied layers become two."""


def same_parameters(model):
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            value = parameter.detach().clone()
            dist.broadcast(value, src=0)
            setattr(module, name, torch.nn.Parameter(value, requires_grad=parameter.requires_grad))
    for buffer in model.buffers():
        dist.broadcast(buffer, src=0)
