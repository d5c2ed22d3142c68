# caught by: squares_of_two_batches
"""The small batch is M / N. Right where every rank has a sample."""


def joined_gradient(model, loss, batches):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.grad = torch.zeros_like(parameter)
    samples = 0
    for inputs, targets in batches:
        (len(inputs) * loss(model(inputs), targets)).backward()
        samples += len(inputs)
    summed = torch.cat([parameter.grad.flatten() for parameter in trained])
    square = summed.square().sum() / max(samples, 1)
    flat = torch.cat([summed, summed.new_tensor([square, samples, samples > 0])])
    dist.all_reduce(flat)
    mean, (squares, total, _) = flat[:-3], flat[-3:].tolist()
    mean /= total
    for parameter, part in zip(trained, mean.split([one.numel() for one in trained]), strict=True):
        parameter.grad = part.view_as(parameter)
    return Squares(total / dist.get_world_size(), squares / total, total, mean.square().sum().item())
