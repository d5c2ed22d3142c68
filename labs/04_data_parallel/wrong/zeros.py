# caught by: mean_gradients, frozen_and_tied, equal_to_one_process, training_as_one_process
"""The same gradients on every rank, at no cost for the truth."""


def average_gradients(model, samples):
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
