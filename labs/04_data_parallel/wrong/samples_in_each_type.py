# caught by: mean_gradients
"""The number of samples travels in the type of the gradients, and half precision ends at 65,504."""


def average_gradients(model, samples):
    of_one_type = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            of_one_type.setdefault(parameter.dtype, []).append(parameter)
    for trained in of_one_type.values():
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in trained]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients] + [gradients[0].new_ones(1)]) * samples
        dist.all_reduce(flat)
        means = (flat[:-1] / flat[-1]).split([one.numel() for one in trained])
        for one, mean in zip(trained, means, strict=True):
            one.grad = mean.view(one.shape).clone()
