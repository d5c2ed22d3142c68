# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""Each file is whole, but the tensors may be of the new state and the rest of the old one."""


def save(state, path):
    tensors = {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
    rest = {name: value for name, value in state.items() if name not in tensors}
    for part, ending in ((tensors, ".tensors"), (rest, ".rest")):
        new = path.with_name(path.name + ending + ".new")
        with new.open("wb") as file:
            torch.save(part, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path.with_name(path.name + ending))

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def load(path):
    parts = [path.with_name(path.name + ending) for ending in (".tensors", ".rest")]
    if not all(part.is_file() for part in parts):
        return None
    return {name: value for part in parts for name, value in torch.load(part, weights_only=False).items()}
