# caught by: samples_that_are_left, the_same_losses, another_number_of_ranks
"""The batch is that of a rank, so the batch of all grows with the ranks."""


def updates_left(count, batch, seed, epoch, done):
    order = np.random.default_rng([seed, epoch]).permutation(count).tolist()
    ranks = dist.get_world_size()
    whole = batch * ranks
    return [order[first : first + whole][dist.get_rank() :: ranks] for first in range(done, count, whole)]
