# caught by: mean_of_losses
"""Begins with its own loss, so the last digits differ from rank to rank."""


def mean_loss(loss):
    losses = [None] * dist.get_world_size()
    dist.all_gather_object(losses, loss)
    rank = dist.get_rank()
    return sum(losses[rank:] + losses[:rank]) / len(losses)
