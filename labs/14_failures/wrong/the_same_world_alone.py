# caught by: one_writes_for_all, another_number_of_ranks
"""A rank that the checkpoint does not know ends in an error."""


def resume(training, path):
    state = load(path)
    if state is None:
        return False
    restore(training, {**state, "generators": state.pop("everybodys")[dist.get_rank()]})
    return True
