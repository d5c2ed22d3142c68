# caught by: snapshot_of_everything
"""Running means are no parameters. In training nobody notices."""

_snapshot, _restore = snapshot, restore


def restore(training, state):
    buffers = {name: value.clone() for name, value in training.model.named_buffers()}
    _restore(training, state)
    for name, value in training.model.named_buffers():
        value.copy_(buffers[name])
