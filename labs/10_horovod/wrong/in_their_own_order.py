# caught by: parameters_of_the_root
"""Ranks that have their parameters in another order exchange different ones."""


def broadcast_parameters(params, root_rank):
    for _, tensor in dict(params).items():
        dist.broadcast(tensor.detach(), src=root_rank)
