# caught by: snapshot_of_everything, one_writes_for_all, the_same_losses
"""Restores the generators first, and then builds something that draws."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    _restore(training, state)
    torch.nn.Linear(1, 1)
