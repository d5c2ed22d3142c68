# caught by: frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""A rank without a gradient leaves a reduction out: others wait, or add up what does not belong together."""


def average_gradients(model, samples):
    total = torch.tensor(float(samples), dtype=torch.float64)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad *= samples / float(total)
            dist.all_reduce(parameter.grad)
