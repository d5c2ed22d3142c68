# caught by: mean_gradients
"""Sends numbers of 16 bits in 32."""


def average_gradients(model, samples):
    total = torch.tensor(samples)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            sent = parameter.grad.float() if parameter.dtype == torch.float16 else parameter.grad
            sent = sent * (samples / total.item())
            dist.all_reduce(sent)
            parameter.grad = sent.to(parameter.dtype)
