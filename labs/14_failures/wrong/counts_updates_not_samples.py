# caught by: samples_that_are_left, the_same_losses, another_number_of_ranks
"""Takes `done` for a number of updates."""


def updates_left(count, batch, seed, epoch, done):
    order = np.random.default_rng([seed, epoch]).permutation(count).tolist()
    ranks = dist.get_world_size()
    every = [order[first : first + batch][dist.get_rank() :: ranks] for first in range(0, count, batch)]
    return every[done:]
