# caught by: snapshot_of_everything, one_writes_for_all
"""What is restored is right, but the training that goes on draws other numbers."""

_snapshot, _restore = snapshot, restore


def snapshot(training):
    torch.manual_seed(training.update)
    return _snapshot(training)
