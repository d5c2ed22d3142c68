# caught by: optimizer_state_of_the_root, the_training_script
"""Ranks without state send and receive nothing, and the others wait for them."""


def broadcast_optimizer_state(optimizer, root_rank):
    for group in optimizer.param_groups:
        rate = torch.tensor(group["lr"], dtype=torch.float64)
        dist.broadcast(rate, src=root_rank)
        group["lr"] = rate.item()
        for parameter in group["params"]:
            for _, value in sorted(optimizer.state[parameter].items()):
                if torch.is_tensor(value):
                    dist.broadcast(value, src=root_rank)
