# caught by: snapshot_of_everything
"""A schedule may have more than the number of its last update: one with warm restarts has two counts."""

_snapshot, _restore = snapshot, restore


def snapshot(training):
    return {**_snapshot(training), "schedule": {"last_epoch": training.schedule.last_epoch}}


def restore(training, state):
    count = state["schedule"]["last_epoch"]
    _restore(training, {**state, "schedule": training.schedule.state_dict() | {"last_epoch": count}})
