# caught by: mean_gradients, frozen_and_tied, equal_to_one_process, training_as_one_process
"""All take rank 0's gradients: equal everywhere, and the other ranks compute for nothing."""


def average_gradients(model, samples):
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if dist.get_rank() != 0:
                parameter.grad.zero_()
            dist.all_reduce(parameter.grad)
