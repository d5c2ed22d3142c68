# caught by: one_writes_for_all
"""The barrier is there, but it comes too soon."""


def save_together(training, path):
    own = snapshot(training)
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, own.pop("generators"))
    dist.barrier()
    if dist.get_rank() == 0:
        save({**own, "everybodys": everybodys}, path)
