# caught by: optimizer_state_of_the_root
"""Moments are sent, the numbers of steps are not: Adam corrects them wrongly."""


def broadcast_optimizer_state(optimizer, root_rank):
    found = [optimizer.state_dict()]
    dist.broadcast_object_list(found, src=root_rank)
    for state in found[0]["state"].values():
        if "step" in state:
            state["step"] = torch.zeros(())
    optimizer.load_state_dict(found[0])
