# caught by: own_random_numbers
"""Every rank augments its samples in the same way."""


def same_start(build, seed):
    _seed_all(seed)
    return build()
