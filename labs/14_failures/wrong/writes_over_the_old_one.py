# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""Opens the old file for writing: half of the new one is all that a killed save leaves."""


def save(state, path):
    with path.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
