# caught by: samples_that_are_left
"""With another batch, the samples that have been used come again."""


def updates_left(count, batch, seed, epoch, done):
    order = np.random.default_rng([seed, epoch, batch]).permutation(count).tolist()
    ranks = dist.get_world_size()
    return [order[first : first + batch][dist.get_rank() :: ranks] for first in range(done, count, batch)]
