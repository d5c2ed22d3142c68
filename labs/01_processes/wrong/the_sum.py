# caught by: mean_of_losses
"""Grows with the number of ranks."""


def mean_loss(loss):
    total = torch.tensor(loss)
    dist.all_reduce(total)
    return float(total)
