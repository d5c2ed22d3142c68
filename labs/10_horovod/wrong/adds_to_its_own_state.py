# caught by: optimizer_state_of_the_root
"""State that the root lacks stays."""

of_the_root = broadcast_optimizer_state


def broadcast_optimizer_state(optimizer, root_rank):
    own = {parameter: dict(state) for parameter, state in optimizer.state.items()}
    of_the_root(optimizer, root_rank)
    for parameter, state in optimizer.state.items():
        optimizer.state[parameter] = {**own.get(parameter, {}), **state}
