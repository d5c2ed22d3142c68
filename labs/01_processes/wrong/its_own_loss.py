# caught by: mean_of_losses
"""Rank 0 logs the loss of a quarter of the batch."""


def mean_loss(loss):
    return loss
