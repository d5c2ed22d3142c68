# caught by: whole_after_a_kill
"""Each save takes one more descriptor, until none is left."""


def save(state, path):
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    os.fsync(os.open(path.parent, os.O_RDONLY))
