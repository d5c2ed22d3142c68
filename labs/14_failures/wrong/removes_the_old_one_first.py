# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""For a moment there is no checkpoint."""


def save(state, path):
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    path.unlink(missing_ok=True)
    os.rename(new, path)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
