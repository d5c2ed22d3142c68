# caught by: snapshot_of_everything, the_same_losses, another_number_of_ranks
"""Takes the optimizer's momentum and leaves the rates as they are."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    groups = copy.deepcopy(training.optimizer.state_dict()["param_groups"])
    _restore(training, {**state, "optimizer": {**state["optimizer"], "param_groups": groups}})
