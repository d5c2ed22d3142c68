# caught by: optimizer_state_of_the_root
"""State is added to what was there: where the root has none, the old one stays."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()]
    dist.broadcast_object_list(found, src=root_rank)
    own = optimizer.state_dict()
    optimizer.load_state_dict({**found[0], "state": {**own["state"], **found[0]["state"]}})
