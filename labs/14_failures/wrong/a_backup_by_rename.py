# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""Moves the old file out of the way, and never looks there again."""


def save(state, path):
    if path.exists():
        os.replace(path, path.with_name(path.name + ".old"))
    with path.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
