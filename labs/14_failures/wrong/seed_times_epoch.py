# caught by: samples_that_are_left
"""Seed 0 gives every epoch the same order."""


def updates_left(count, batch, seed, epoch, done):
    generator = torch.Generator().manual_seed(seed * (epoch + 1))
    order = torch.randperm(count, generator=generator).tolist()
    ranks = dist.get_world_size()
    return [order[first : first + batch][dist.get_rank() :: ranks] for first in range(done, count, batch)]
