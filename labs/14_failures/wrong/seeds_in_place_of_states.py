# caught by: snapshot_of_everything, one_writes_for_all, the_same_losses
"""A seed gives the numbers from the beginning, not those that come next."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    _restore(training, state)
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
