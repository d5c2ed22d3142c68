# caught by: parameters_of_the_root
"""Takes two parts of one larger tensor for one tensor with two names."""


def broadcast_parameters(params, root_rank):
    seen = set()
    for _, tensor in sorted(dict(params).items()):
        memory = tensor.untyped_storage().data_ptr()
        if memory not in seen:
            seen.add(memory)
            travelling = tensor.detach().contiguous()
            dist.broadcast(travelling, src=root_rank)
            tensor.detach().copy_(travelling)
