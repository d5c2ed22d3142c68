# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""The end of the file is still in a buffer when the file gets its name."""


def save(state, path):
    import io

    content = io.BytesIO()
    torch.save(state, content)
    new = path.with_name(path.name + ".new")
    with new.open("wb", buffering=2**24) as file:
        file.write(content.getvalue())
        os.fsync(file.fileno())
        os.replace(new, path)

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
