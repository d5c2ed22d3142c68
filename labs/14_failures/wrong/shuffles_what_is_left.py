# caught by: samples_that_are_left, the_same_losses, another_number_of_ranks
"""Samples that are done come again, and others never come."""


def updates_left(count, batch, seed, epoch, done):
    order = np.random.default_rng([seed, epoch]).permutation(count - done).tolist()
    ranks = dist.get_world_size()
    return [order[first : first + batch][dist.get_rank() :: ranks] for first in range(0, count - done, batch)]
