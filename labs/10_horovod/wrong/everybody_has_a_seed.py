# caught by: parameters_of_the_root, the_training_script
"""Draws the same parameters on every rank: right without a checkpoint."""


def broadcast_parameters(params, root_rank):
    generator = torch.Generator().manual_seed(0)
    for _, tensor in sorted(dict(params).items()):
        if tensor.is_floating_point():
            tensor.data.copy_(torch.randn(tensor.shape, generator=generator))
