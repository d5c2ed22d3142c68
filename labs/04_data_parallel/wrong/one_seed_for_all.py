# caught by: one_start, training_as_one_process
"""Draws again from one seed: alike, but what rank 0 had (say a checkpoint) is lost."""


def same_parameters(model):
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator))
    for buffer in model.buffers():
        dist.broadcast(buffer, src=0)
