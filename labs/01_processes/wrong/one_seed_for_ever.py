# caught by: same_parameters
"""The seed that was asked for is not used."""


def same_start(build, seed):
    _seed_all(0)
    model = build()
    _seed_all(1 + dist.get_rank())
    return model
