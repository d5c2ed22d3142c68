# caught by: samples_of_each_update, training_as_one_process
"""Always one batch for each update. Right for accumulated = 1."""

_several = own_batches


def own_batches(order, batch, accumulated):
    return _several(order, batch, 1)
