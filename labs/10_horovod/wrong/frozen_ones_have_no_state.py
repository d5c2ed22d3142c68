# caught by: optimizer_state_of_the_root
"""A frozen parameter's state stays at home."""


def broadcast_optimizer_state(optimizer, root_rank):
    parameters = [
        parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad
    ]
    settings = [{key: group[key] for key in group if key != "params"} for group in optimizer.param_groups]
    found = [(settings, [optimizer.state.get(parameter, {}) for parameter in parameters])]
    dist.broadcast_object_list(found, src=root_rank)
    for group, values in zip(optimizer.param_groups, found[0][0]):
        group.update(values)
    for parameter, theirs in zip(parameters, found[0][1]):
        if theirs:
            optimizer.state[parameter] = theirs
        else:
            optimizer.state.pop(parameter, None)
