# caught by: whole_after_a_loss_of_power
"""The new name is safe sooner than the content."""


def save(state, path):
    new = path.with_name(path.name + ".new")
    torch.save(state, new)
    os.replace(new, path)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
