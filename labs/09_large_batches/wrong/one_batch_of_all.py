# caught by: samples_of_each_update
"""A rank's whole share is one batch, which would not fit into memory."""

_parts = own_batches


def own_batches(order, batch, accumulated):
    return [
        [[sample for one in update for sample in one]] if update else [] for update in _parts(order, batch, accumulated)
    ]
