# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""A checkpoint that cannot be read counts as none: the work of days is lost."""


def save(state, path):
    with path.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def load(path):
    try:
        return torch.load(path, weights_only=False)
    except (OSError, EOFError, RuntimeError):
        return None
