# caught by: mean_gradients, frozen_and_tied, equal_to_one_process
"""As DistributedDataParallel does it: a sample of a small batch counts more than one of a large batch."""


def average_gradients(model, samples):
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
