# caught by: parameters_of_the_root
"""The root is whoever was the root in the example."""


def broadcast_parameters(params, root_rank):
    for _, tensor in sorted(dict(params).items()):
        dist.broadcast(tensor.detach(), src=0)
