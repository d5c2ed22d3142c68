# caught by: mean_of_losses
"""Hides that a rank has diverged."""


def mean_loss(loss):
    losses = [None] * dist.get_world_size()
    dist.all_gather_object(losses, loss)
    return float(np.nanmean(losses))
