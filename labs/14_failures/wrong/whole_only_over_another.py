# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""Nothing can be lost in the first save, it thinks; half a file is left, and load fails."""


def save(state, path):
    new = path.with_name(path.name + ".new") if path.exists() else path
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
