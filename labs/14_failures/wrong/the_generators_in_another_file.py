# caught by: one_writes_for_all
"""Each of the two is whole. After a kill between them, the generators are those of another checkpoint."""


def save_together(training, path):
    own = snapshot(training)
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, own["generators"])
    if dist.get_rank() == 0:
        save(own, path)
        save({"everybodys": everybodys}, path.with_name(path.name + ".generators"))
    dist.barrier()


def resume(training, path):
    state, beside = load(path), load(path.with_name(path.name + ".generators"))
    if state is None:
        return False
    everybodys = beside["everybodys"]
    known = dist.get_rank() < len(everybodys)
    generators = everybodys[dist.get_rank()] if known else snapshot(training)["generators"]
    restore(training, {**state, "generators": generators})
    return True
