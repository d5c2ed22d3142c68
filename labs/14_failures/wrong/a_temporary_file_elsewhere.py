# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""The folder for temporary files is on another file system, where a move is a copy."""


def save(state, path):
    import shutil
    import tempfile

    with tempfile.NamedTemporaryFile(delete=False) as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    shutil.move(file.name, path)
    with path.open("rb+") as file:
        os.fsync(file.fileno())

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
