# caught by: samples_that_are_left, the_same_losses, another_number_of_ranks
"""As with drop_last: samples that fill no batch are nobody's."""


def updates_left(count, batch, seed, epoch, done):
    order = np.random.default_rng([seed, epoch]).permutation(count).tolist()
    ranks = dist.get_world_size()
    return [order[first : first + batch][dist.get_rank() :: ranks] for first in range(done, count - batch + 1, batch)]
