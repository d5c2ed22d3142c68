# caught by: parameters_of_the_root
"""Names that differ by a capital letter keep each rank's own order."""


def broadcast_parameters(params, root_rank):
    for _, tensor in sorted(dict(params).items(), key=lambda pair: pair[0].lower()):
        travelling = tensor.detach().contiguous()
        dist.broadcast(travelling, src=root_rank)
        tensor.detach().copy_(travelling)
