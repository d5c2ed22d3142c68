# caught by: equal_to_one_process, training_as_one_process
"""Asks once how many samples all ranks have."""


def average_gradients(model, samples):
    if not hasattr(model, "samples"):
        total = torch.tensor(samples)
        dist.all_reduce(total)
        model.samples = total.item()
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad *= samples / model.samples
            dist.all_reduce(parameter.grad)
