# caught by: whole_after_a_loss_of_power
"""The content is safe, but nobody finds it: the old name comes back."""


def save(state, path):
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
