# caught by: same_parameters
"""Takes rank 0's parameters, which no seed decides."""


def same_start(build, seed):
    model = build()
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    _seed_all(seed + 1 + dist.get_rank())
    return model
