# caught by: whole_after_a_loss_of_power
"""os.sync makes all safe that was there before it. The new name comes later."""


def save(state, path):
    new = path.with_name(path.name + ".new")
    torch.save(state, new)
    os.sync()
    os.replace(new, path)
