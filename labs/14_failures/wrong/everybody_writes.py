# caught by: one_writes_for_all, the_same_losses, another_number_of_ranks
"""All ranks write one file, at the same time. With one rank it is right."""


def save_together(training, path):
    own = snapshot(training)
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, own.pop("generators"))
    save({**own, "everybodys": everybodys}, path)
    dist.barrier()
