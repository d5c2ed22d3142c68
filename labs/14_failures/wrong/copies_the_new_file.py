# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""A copy is not a rename: the old file is written over, piece by piece."""


def save(state, path):
    import shutil

    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    shutil.copyfile(new, path)
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    new.unlink()

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
