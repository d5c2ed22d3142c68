# caught by: snapshot_of_everything, the_same_losses, another_number_of_ranks
"""Puts a new model into the training; the optimizer trains the old one."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    training.model = copy.deepcopy(training.model)
    _restore(training, state)
