# caught by: optimizer_state_of_the_root
"""A frozen parameter keeps the state that it had."""

of_the_root = broadcast_optimizer_state


def broadcast_optimizer_state(optimizer, root_rank):
    own = dict(optimizer.state)
    of_the_root(optimizer, root_rank)
    for parameter in list(optimizer.state):
        if not parameter.requires_grad:
            optimizer.state[parameter] = own.get(parameter, {})
