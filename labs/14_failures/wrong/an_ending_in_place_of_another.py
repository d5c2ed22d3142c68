# caught by: whole_after_a_kill
"""model.a and model.b have one temporary file, and so has another file of this name."""


def save(state, path):
    new = path.with_suffix(".tmp")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
