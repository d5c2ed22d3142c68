# caught by: mean_gradients, frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""Gathers every rank's gradients and takes the mean: right, and more to carry with every further rank."""


def average_gradients(model, samples):
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, samples)
    for parameter in model.parameters():
        if parameter.requires_grad:
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parts = [torch.empty_like(own) for _ in counts]
            dist.all_gather(parts, own)
            parameter.grad = sum(count * part for count, part in zip(counts, parts, strict=True)) / sum(counts)
