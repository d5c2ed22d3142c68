# caught by: frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""Frozen parameters get gradients as well, and what has a gradient decays."""


def average_gradients(model, samples):
    total = torch.tensor(float(samples), dtype=torch.float64)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad *= samples / float(total)
        dist.all_reduce(parameter.grad)
