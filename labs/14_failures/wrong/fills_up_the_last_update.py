# caught by: samples_that_are_left, the_same_losses, another_number_of_ranks
"""As DistributedSampler does: the first samples come again."""


def updates_left(count, batch, seed, epoch, done):
    order = np.random.default_rng([seed, epoch]).permutation(count).tolist()
    order += order[: -count % batch]
    ranks = dist.get_world_size()
    return [order[first : first + batch][dist.get_rank() :: ranks] for first in range(done, count, batch)]
