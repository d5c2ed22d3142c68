# caught by: whole_after_a_kill, whole_after_a_loss_of_power, one_writes_for_all
"""Removes what an earlier save may have left, and other checkpoints, too."""

_save = save


def save(state, path):
    _save(state, path)
    for left in path.parent.iterdir():
        if left.name != path.name:
            left.unlink()
