# caught by: mean_gradients
"""Gradients are views of a buffer that the next model of the same size writes over."""

KEPT = {}


def average_gradients(model, samples):
    total = torch.tensor(samples)
    dist.all_reduce(total)
    for number, parameter in enumerate(model.parameters()):
        if parameter.requires_grad:
            kept = KEPT.setdefault((number, parameter.shape, parameter.dtype), torch.zeros_like(parameter))
            kept.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
            kept *= samples / total.item()
            dist.all_reduce(kept)
            parameter.grad = kept
