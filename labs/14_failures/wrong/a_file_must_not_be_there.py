# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""What a killed save has left stops all later ones."""


def save(state, path):
    new = path.with_name(path.name + ".new")
    with new.open("xb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
