# caught by: optimizer_state_of_the_root
"""All state takes the type of its parameter, counts of steps, too."""

of_the_root = broadcast_optimizer_state


def broadcast_optimizer_state(optimizer, root_rank):
    of_the_root(optimizer, root_rank)
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            state[name] = value.to(parameter) if torch.is_tensor(value) else value
