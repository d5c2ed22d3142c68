# caught by: optimizer_state_of_the_root
"""Settings of the first group of parameters are sent, those of further groups are not."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()]
    dist.broadcast_object_list(found, src=root_rank)
    own = optimizer.state_dict()["param_groups"]
    groups = [found[0]["param_groups"][0], *own[1:]]
    optimizer.load_state_dict({"state": found[0]["state"], "param_groups": groups})
