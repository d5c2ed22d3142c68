# caught by: parameters_of_the_root, the_training_script
"""A state_dict's tensors are not trained: none of them is sent."""


def broadcast_parameters(params, root_rank):
    for _, tensor in sorted(dict(params).items()):
        if tensor.requires_grad:
            dist.broadcast(tensor.detach(), src=root_rank)
