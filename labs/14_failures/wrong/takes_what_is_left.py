# caught by: whole_after_a_kill, whole_after_a_loss_of_power
"""Believes that the newest file is the best one, also if nobody has finished it."""


def load(path):
    new = path.with_name(path.name + ".new")
    newest = new if new.is_file() else path
    return torch.load(newest, weights_only=False) if newest.is_file() else None
