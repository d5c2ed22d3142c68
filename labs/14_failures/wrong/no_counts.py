# caught by: snapshot_of_everything, one_writes_for_all, the_same_losses, another_number_of_ranks
"""The parameters are as they were, and the training begins with update 1."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    _restore(training, {**state, "counts": (0, 0, 0)})
