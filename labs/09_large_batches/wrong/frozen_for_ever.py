# caught by: gradient_of_all_samples, squares_of_two_batches
"""Looks once which parameters are trained. Right until that changes."""


def joined_gradient(model, loss, batches):
    trained = vars(model).setdefault("_trained", [one for one in model.parameters() if one.requires_grad])
    for parameter in trained:
        parameter.grad = torch.zeros_like(parameter).detach()
    samples = 0
    for inputs, targets in batches:
        (len(inputs) * loss(model(inputs), targets)).backward()
        samples += len(inputs)
    summed = torch.cat([parameter.grad.flatten() for parameter in trained])
    square = summed.square().sum() / max(samples, 1)
    flat = torch.cat([summed, summed.new_tensor([square, samples, samples > 0])])
    dist.all_reduce(flat)
    mean, (squares, total, having) = flat[:-3], flat[-3:].tolist()
    mean /= total
    for parameter, part in zip(trained, mean.split([one.numel() for one in trained]), strict=True):
        parameter.grad = part.view_as(parameter)
    return Squares(total / having, squares / total, total, mean.square().sum().item())
