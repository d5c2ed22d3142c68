# caught by: samples_that_are_left
"""It is right where an update ends. From another place on, samples of the update are lost."""


def updates_left(count, batch, seed, epoch, done):
    order = np.random.default_rng([seed, epoch]).permutation(count).tolist()
    ranks = dist.get_world_size()
    updates = [order[first : first + batch] for first in range(0, count, batch)]
    return [one[dist.get_rank() :: ranks] for one in updates[math.ceil(done / batch) :]]
