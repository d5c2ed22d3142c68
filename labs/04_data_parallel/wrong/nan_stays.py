# caught by: one_start
"""Moves each number all the way to rank 0's; what is nan or infinite stays so."""


@torch.no_grad()
def same_parameters(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        received = tensor.clone()
        dist.broadcast(received, src=0)
        if tensor.is_floating_point():
            tensor.lerp_(received, 1.0)
        else:
            tensor.copy_(received)
