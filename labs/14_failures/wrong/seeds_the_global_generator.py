# caught by: samples_that_are_left, the_same_losses
"""The order is right, and after each epoch dropout begins anew."""


def updates_left(count, batch, seed, epoch, done):
    torch.manual_seed(1000003 * seed + epoch)
    order = torch.randperm(count).tolist()
    ranks = dist.get_world_size()
    return [order[first : first + batch][dist.get_rank() :: ranks] for first in range(done, count, batch)]
