# caught by: samples_of_each_update, training_as_one_process
"""Only updates with all samples, as `drop_last` does."""

_whole = own_batches


def own_batches(order, batch, accumulated):
    joined = dist.get_world_size() * batch * accumulated
    return _whole(order[: len(order) // joined * joined], batch, accumulated)
