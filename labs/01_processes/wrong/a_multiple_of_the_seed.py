# caught by: own_random_numbers
"""Any multiple of 0 is 0."""


def same_start(build, seed):
    _seed_all(seed)
    model = build()
    _seed_all(seed * (dist.get_rank() + 2))
    return model
