# caught by: optimizer_state_of_the_root, the_training_script
"""The learning rate is sent, momentum is not."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()["param_groups"]]
    dist.broadcast_object_list(found, src=root_rank)
    for group, settings in zip(optimizer.param_groups, found[0], strict=True):
        group.update({name: value for name, value in settings.items() if name != "params"})
