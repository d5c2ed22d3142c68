# caught by: parameters_of_the_root, the_training_script
"""Leaves the loop too early."""


def broadcast_parameters(params, root_rank):
    for _, tensor in sorted(dict(params).items()):
        dist.broadcast(tensor.detach(), src=root_rank)
        break
