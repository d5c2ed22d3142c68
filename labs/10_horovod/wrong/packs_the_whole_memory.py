# caught by: parameters_of_the_root
"""A part of a larger tensor takes all of that one along."""


def broadcast_parameters(params, root_rank):
    named = dict(params)
    values = [{name: tensor.detach() for name, tensor in named.items()} if rank() == root_rank else None]
    dist.broadcast_object_list(values, src=root_rank)
    with torch.no_grad():
        for name in named:
            named[name].copy_(values[0][name])
