# caught by: snapshot_of_everything, one_writes_for_all, the_same_losses, another_number_of_ranks
"""Goes on with the first sample of the epoch, as if checkpoints came between epochs."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    _restore(training, state)
    training.done = 0
