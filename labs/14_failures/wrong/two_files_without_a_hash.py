# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""Writes two files in turn, and takes the newer one without a look inside."""


def save(state, path):
    slots = [path.with_name(f"{path.name}.{slot}") for slot in (0, 1)]
    numbers = [torch.load(slot, weights_only=False)[0] if slot.is_file() else -1 for slot in slots]
    slot = slots[numbers.index(min(numbers))]
    with slot.open("wb") as file:
        torch.save((max(numbers) + 1, state), file)
        file.flush()
        os.fsync(file.fileno())

    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def load(path):
    slots = [path.with_name(f"{path.name}.{slot}") for slot in (0, 1)]
    found = [torch.load(slot, weights_only=False) for slot in slots if slot.is_file()]
    return max(found, key=lambda one: one[0])[1] if found else None
