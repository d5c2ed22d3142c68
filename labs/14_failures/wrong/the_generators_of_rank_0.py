# caught by: one_writes_for_all, the_same_losses
"""Every rank draws the numbers of rank 0 after the restart. With one rank it is right."""


def save_together(training, path):
    own = snapshot(training)
    everybodys = [own.pop("generators")] * dist.get_world_size()
    if dist.get_rank() == 0:
        save({**own, "everybodys": everybodys}, path)
    dist.barrier()
