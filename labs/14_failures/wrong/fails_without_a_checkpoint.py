# caught by: whole_after_a_kill, whole_after_a_loss_of_power, one_writes_for_all, the_same_losses, another_number_of_ranks
"""Nobody has saved yet, and load ends in an error."""


def load(path):
    return torch.load(path, weights_only=False)
