# caught by: snapshot_of_everything
"""Momentum is still that of the training, which goes on."""

_snapshot, _restore = snapshot, restore


def snapshot(training):
    state = _snapshot(training)
    state["optimizer"] = training.optimizer.state_dict()
    return state
