# caught by: snapshot_of_everything, one_writes_for_all, the_same_losses
"""Dropout is as it was; noise from numpy and flips from random are not."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    now = snapshot(training)["generators"]
    _restore(training, {**state, "generators": {**now, "torch": state["generators"]["torch"]}})
