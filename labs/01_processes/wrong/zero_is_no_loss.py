# caught by: mean_of_losses
"""Takes a loss of 0 for a rank that had no samples."""


def mean_loss(loss):
    total = torch.tensor([loss, float(loss != 0.0)], dtype=torch.float64)
    dist.all_reduce(total)
    return float(total[0] / max(total[1], 1.0))
