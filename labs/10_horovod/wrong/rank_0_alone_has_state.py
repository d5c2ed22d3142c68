# caught by: optimizer_state_of_the_root
"""As with a checkpoint: whoever has state of its own and is not the root keeps the settings."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()]
    dist.broadcast_object_list(found, src=root_rank)
    settings = [dict(group) for group in optimizer.state_dict()["param_groups"]]
    kept = bool(optimizer.state) and rank() != root_rank
    optimizer.load_state_dict({**found[0], "param_groups": settings} if kept else found[0])
