# caught by: whole_after_a_loss_of_power
"""Between the rename and the fsync, the new name leads to nothing."""


def save(state, path):
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        torch.save(state, file)
    os.replace(new, path)
    with path.open("rb+") as file:
        os.fsync(file.fileno())

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
