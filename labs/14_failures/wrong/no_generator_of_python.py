# caught by: snapshot_of_everything, one_writes_for_all, the_same_losses
"""Forgets the generator that the transforms of images draw from."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    now = snapshot(training)["generators"]
    _restore(training, {**state, "generators": {**state["generators"], "python": now["python"]}})
