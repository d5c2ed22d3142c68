# caught by: whole_after_a_loss_of_power
"""A rename over an existing name is a change of names, too."""


def save(state, path):
    new, first = path.with_name(path.name + ".new"), not path.exists()
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    if first:
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
