# caught by: mean_gradients, frozen_and_tied, equal_to_one_process, training_as_one_process
"""Steps grow with the number of ranks."""


def average_gradients(model, samples):
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
