# caught by: optimizer_state_of_the_root
"""The root is rank 0, whatever was asked for."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()]
    dist.broadcast_object_list(found, src=0)
    optimizer.load_state_dict(found[0])
