# caught by: mean_gradients, frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""Rank 0 adds up and hands out: right, and its link carries everybody's gradients."""


def average_gradients(model, samples):
    total = torch.tensor(float(samples), dtype=torch.float64)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.requires_grad:
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = own * (samples / float(total))
            if dist.get_rank() == 0:
                for other in range(1, dist.get_world_size()):
                    part = torch.empty_like(own)
                    dist.recv(part, other)
                    parameter.grad += part
                for other in range(1, dist.get_world_size()):
                    dist.send(parameter.grad, other)
            else:
                dist.send(parameter.grad, 0)
                dist.recv(parameter.grad, 0)
