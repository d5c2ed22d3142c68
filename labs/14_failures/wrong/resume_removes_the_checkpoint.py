# caught by: one_writes_for_all, the_same_losses, another_number_of_ranks
"""A second failure before the next checkpoint loses everything."""

_resume = resume


def resume(training, path):
    there = _resume(training, path)
    dist.barrier()
    if dist.get_rank() == 0:
        path.unlink(missing_ok=True)
    dist.barrier()
    return there
