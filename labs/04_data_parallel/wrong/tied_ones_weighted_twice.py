# caught by: frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""What two layers share stands twice in the list, is weighted and added up twice: right for batches of one size."""


def average_gradients(model, samples):
    total = torch.tensor(float(samples), dtype=torch.float64)
    dist.all_reduce(total)
    listed = [one for _, one in model.named_parameters(remove_duplicate=False) if one.requires_grad]
    for parameter in listed:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad *= samples / float(total)
    for parameter in listed:
        dist.all_reduce(parameter.grad)
