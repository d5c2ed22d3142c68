# caught by: same_parameters
"""Sends only what is trained; what is frozen differs from rank to rank."""


def same_start(build, seed):
    _seed_all(seed + dist.get_rank())
    model = build()
    for parameter in model.parameters():
        if parameter.requires_grad:
            dist.broadcast(parameter.data, src=0)
    return model
