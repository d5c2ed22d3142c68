# caught by: whole_after_a_kill, whole_after_a_loss_of_power, one_writes_for_all, the_same_losses, another_number_of_ranks
"""Reads with the safe loader, which knows no numpy arrays."""


def load(path):
    return torch.load(path) if path.is_file() else None
