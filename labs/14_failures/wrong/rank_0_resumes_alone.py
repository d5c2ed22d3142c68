# caught by: one_writes_for_all, the_same_losses, another_number_of_ranks
"""The other ranks keep the parameters that they began with."""

_resume = resume


def resume(training, path):
    there = path.is_file()
    if dist.get_rank() == 0:
        _resume(training, path)
    return there
