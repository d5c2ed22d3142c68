# caught by: same_parameters
"""Every rank trains another model."""


def same_start(build, seed):
    _seed_all(seed + dist.get_rank())
    return build()
