# caught by: samples_that_are_left, the_same_losses, another_number_of_ranks
"""Every rank has a fixed share. With another world the shares are others, and samples come twice."""


def updates_left(count, batch, seed, epoch, done):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    own = np.random.default_rng([seed, epoch]).permutation(range(rank, count, ranks)).tolist()
    sizes = [len(range(rank, min(batch, count - first), ranks)) for first in range(0, count, batch)]
    updates, place = [], 0
    for size in sizes:
        updates.append(own[place : place + size])
        place += size
    return updates[-(-done // batch) :]
