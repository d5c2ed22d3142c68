# caught by: parameters_of_the_root, the_training_script
"""What arrives is kept in new tensors, which the model does not have."""


def broadcast_parameters(params, root_rank):
    received = {}
    for name, tensor in sorted(dict(params).items()):
        received[name] = tensor.detach().clone()
        dist.broadcast(received[name], src=root_rank)
