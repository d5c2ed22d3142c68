# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""Takes care while there is nothing to lose, and writes over what is there."""


def save(state, path):
    new = path if path.exists() else path.with_name(path.name + ".new")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
