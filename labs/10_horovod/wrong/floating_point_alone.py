# caught by: parameters_of_the_root, the_training_script
"""Counters and masks stay each rank's own."""


def broadcast_parameters(params, root_rank):
    for _, tensor in sorted(dict(params).items()):
        if tensor.is_floating_point():
            dist.broadcast(tensor.detach(), src=root_rank)
