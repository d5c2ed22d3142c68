# caught by: samples_of_each_update, training_as_one_process
"""The last update is filled up with the first samples, as DistributedSampler does. Right where nothing is left over."""

_whole = own_batches


def own_batches(order, batch, accumulated):
    ranks = dist.get_world_size()
    return _whole([*order, *order[: -len(order) % ranks]], batch, accumulated)
