# caught by: mean_of_losses
"""The others keep a sum of nothing."""


def mean_loss(loss):
    total = torch.tensor(loss)
    dist.reduce(total, dst=0)
    return float(total) / dist.get_world_size()
