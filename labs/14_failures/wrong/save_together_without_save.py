# caught by: one_writes_for_all
"""save is whole after a kill, and nobody calls it."""


def save_together(training, path):
    own = snapshot(training)
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, own.pop("generators"))
    if dist.get_rank() == 0:
        torch.save({**own, "everybodys": everybodys}, path)
    dist.barrier()
