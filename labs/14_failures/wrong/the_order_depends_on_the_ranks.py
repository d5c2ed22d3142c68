# caught by: samples_that_are_left, another_number_of_ranks
"""Right as long as the world stays as it is."""


def updates_left(count, batch, seed, epoch, done):
    ranks = dist.get_world_size()
    order = np.random.default_rng([seed, epoch, ranks]).permutation(count).tolist()
    return [order[first : first + batch][dist.get_rank() :: ranks] for first in range(done, count, batch)]
