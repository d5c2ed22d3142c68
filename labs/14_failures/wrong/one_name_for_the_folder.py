# caught by: whole_after_a_kill, whole_after_a_loss_of_power, the_same_losses, another_number_of_ranks
"""Each folder has one checkpoint, it thinks: two runs in one folder take each other's."""


def save(state, path):
    whole = path.with_name("latest")
    new = path.with_name("latest.new")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, whole)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def load(path):
    whole = path.with_name("latest")
    return torch.load(whole, weights_only=False) if whole.is_file() else None
