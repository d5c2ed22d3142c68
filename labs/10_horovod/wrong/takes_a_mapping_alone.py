# caught by: parameters_of_the_root
"""Pairs of name and tensor have no items()."""


def broadcast_parameters(params, root_rank):
    for _, tensor in sorted(params.items()):
        dist.broadcast(tensor.detach(), src=root_rank)
