# caught by: one_writes_for_all
"""New ranks take the generators of rank 0, and draw the same numbers."""


def resume(training, path):
    state = load(path)
    if state is None:
        return False
    everybodys = state.pop("everybodys")
    known = dist.get_rank() if dist.get_rank() < len(everybodys) else 0
    restore(training, {**state, "generators": everybodys[known]})
    return True
