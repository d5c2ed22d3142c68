# caught by: parameters_of_the_root
"""A Mapping that is no dict is taken for pairs."""


def broadcast_parameters(params, root_rank):
    pairs = params.items() if isinstance(params, dict) else params
    for _, tensor in sorted(pairs, key=lambda pair: pair[0]):
        travelling = tensor.detach().contiguous()
        dist.broadcast(travelling, src=root_rank)
        tensor.detach().copy_(travelling)
