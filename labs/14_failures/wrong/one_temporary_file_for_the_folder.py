# caught by: whole_after_a_kill
"""The temporary file of any checkpoint of the folder, and perhaps the file of somebody else."""


def save(state, path):
    new = path.parent / "tmp"
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
