# caught by: snapshot_of_everything, the_same_losses, another_number_of_ranks
"""The optimizer begins anew. With plain SGD nobody would notice."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    fresh = copy.deepcopy(training.optimizer.state_dict())
    _restore(training, {**state, "optimizer": {**state["optimizer"], "state": fresh["state"]}})
