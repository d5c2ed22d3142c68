# caught by: whole_after_a_loss_of_power
"""The last bytes are in Python's buffer while fsync makes the others safe."""


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
