# caught by: one_writes_for_all
"""The others go on while rank 0 writes."""


def save_together(training, path):
    own = snapshot(training)
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, own.pop("generators"))
    if dist.get_rank() == 0:
        save({**own, "everybodys": everybodys}, path)
