# caught by: samples_of_each_update
"""What is taken is gone: the caller's list is empty afterwards."""

_keeping = own_batches


def own_batches(order, batch, accumulated):
    found = _keeping(order, batch, accumulated)
    del order[:]
    return found
