# caught by: optimizer_state_of_the_root, the_training_script
"""All begin alike, and without any state."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()["param_groups"]]
    dist.broadcast_object_list(found, src=root_rank)
    optimizer.load_state_dict({"state": {}, "param_groups": found[0]})
