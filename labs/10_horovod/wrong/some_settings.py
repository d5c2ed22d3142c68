# caught by: optimizer_state_of_the_root
"""Sends the settings that it has heard of: others, and a scheduler's, stay."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()]
    dist.broadcast_object_list(found, src=root_rank)
    groups = optimizer.state_dict()["param_groups"]
    for group, new in zip(groups, found[0]["param_groups"], strict=True):
        group.update({name: new[name] for name in ("lr", "momentum", "weight_decay", "betas") if name in new})
    optimizer.load_state_dict({"state": found[0]["state"], "param_groups": groups})
