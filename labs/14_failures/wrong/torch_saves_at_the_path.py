# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""The usual line. It is right as long as nobody is killed."""


def save(state, path):
    torch.save(state, path)
