# caught by: samples_of_each_update, training_as_one_process
"""A rank whose share of the last update is empty has one update less than the others."""

_with_empty = own_batches


def own_batches(order, batch, accumulated):
    return [update for update in _with_empty(order, batch, accumulated) if update]
