# caught by: mean_gradients
"""Counts the samples in a type that does not hold such a number."""


def average_gradients(model, samples):
    total = torch.tensor(samples, dtype=next(model.parameters()).dtype)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad *= samples / total.item()
            dist.all_reduce(parameter.grad)
