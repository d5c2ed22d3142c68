# caught by: mean_gradients, frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""The mean comes to rank 0, and the others go on with their own."""


def average_gradients(model, samples):
    total = torch.tensor(float(samples), dtype=torch.float64)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad *= samples / float(total)
            dist.reduce(parameter.grad, dst=0)
