# caught by: snapshot_of_everything, the_same_losses, another_number_of_ranks
"""The rate is right until the schedule changes it again."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    _restore(training, {**state, "schedule": training.schedule.state_dict()})
