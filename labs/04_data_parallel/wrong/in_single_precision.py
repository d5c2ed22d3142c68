# caught by: mean_gradients, frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""Half of the bytes, and half of the digits."""


def average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.requires_grad:
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            part = (own * (samples / total)).float()
            dist.all_reduce(part)
            parameter.grad = part.to(parameter.dtype)
