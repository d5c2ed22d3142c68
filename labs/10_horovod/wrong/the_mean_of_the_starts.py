# caught by: parameters_of_the_root, the_training_script
"""All begin alike, and nobody as the root does."""


def broadcast_parameters(params, root_rank):
    for _, tensor in sorted(dict(params).items()):
        mean = tensor.detach().double()
        dist.all_reduce(mean)
        tensor.data.copy_(mean / size())
