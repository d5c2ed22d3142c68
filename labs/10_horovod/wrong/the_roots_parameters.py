# caught by: optimizer_state_of_the_root, the_training_script
"""The optimizer gets copies of the root's parameters, and moves them in place of its own."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [(optimizer.param_groups, dict(optimizer.state))]
    dist.broadcast_object_list(found, src=root_rank)
    if rank() != root_rank:
        optimizer.param_groups, state = found[0]
        optimizer.state.clear()
        optimizer.state.update(state)
