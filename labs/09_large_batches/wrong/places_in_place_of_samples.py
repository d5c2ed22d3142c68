# caught by: samples_of_each_update, training_as_one_process
"""The places in the order, not the samples there. Right for the order 0, 1, 2, ..."""

_samples = own_batches


def own_batches(order, batch, accumulated):
    return _samples(range(len(order)), batch, accumulated)
