# caught by: parameters_of_the_root
"""What arrives for a part of a larger tensor stays in its contiguous copy."""


def broadcast_parameters(params, root_rank):
    for _, tensor in sorted(dict(params).items()):
        dist.broadcast(tensor.detach().contiguous(), src=root_rank)
