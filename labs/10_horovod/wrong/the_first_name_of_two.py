# caught by: parameters_of_the_root
"""A tensor with two names goes by the one that comes first, which is not the same on all ranks."""


def broadcast_parameters(params, root_rank):
    once = {}
    for name, tensor in dict(params).items():
        once.setdefault(tensor.data_ptr(), (name, tensor))
    for _, tensor in sorted(once.values(), key=lambda pair: pair[0]):
        travelling = tensor.detach().contiguous()
        dist.broadcast(travelling, src=root_rank)
        tensor.detach().copy_(travelling)
