# caught by: frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""Goes through the layers: the mean of equal means is right, but what two layers share is sent twice."""


def average_gradients(model, samples):
    total = torch.tensor(float(samples), dtype=torch.float64)
    dist.all_reduce(total)
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                parameter.grad *= samples / float(total)
                dist.all_reduce(parameter.grad)
