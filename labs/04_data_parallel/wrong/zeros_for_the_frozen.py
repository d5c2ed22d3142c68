# caught by: frozen_and_tied, equal_to_one_process, training_as_one_process
"""Frozen parameters are not sent, but get gradients of zero: weight decay then trains them."""


def average_gradients(model, samples):
    total = torch.tensor(float(samples), dtype=torch.float64)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        if parameter.requires_grad:
            parameter.grad *= samples / float(total)
            dist.all_reduce(parameter.grad)
