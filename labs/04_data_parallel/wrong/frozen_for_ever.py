# caught by: frozen_and_tied
"""Looks once which parameters of a model are trained."""


def average_gradients(model, samples):
    total = torch.tensor(samples)
    dist.all_reduce(total)
    if not hasattr(model, "trained"):
        model.trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in model.trained:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad *= samples / total.item()
        dist.all_reduce(parameter.grad)
