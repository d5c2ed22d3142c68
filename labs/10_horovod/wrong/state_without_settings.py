# caught by: optimizer_state_of_the_root, the_training_script
"""Momentum is sent, the learning rate is not."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()["state"]]
    dist.broadcast_object_list(found, src=root_rank)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": found[0]})
