# caught by: snapshot_of_everything
"""Puts a new model into the training; the optimizer trains the old one."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    training.model = copy.deepcopy(training.model)
    _restore(training, state)
