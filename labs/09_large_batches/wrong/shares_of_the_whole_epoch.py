# caught by: samples_of_each_update, training_as_one_process
"""A rank's share of the epoch is cut into updates: full updates are right if each takes every N-th; block shares not."""


def own_batches(order, batch, accumulated):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    size = -(-len(order) // ranks)
    own = list(order[rank * size : (rank + 1) * size])
    parts = [own[start : start + batch] for start in range(0, len(own), batch)]
    return [parts[start : start + accumulated] for start in range(0, len(parts), accumulated)]
