# caught by: same_parameters
"""Seeds with the hash of a word: Python salts it anew in every process."""


def same_start(build, seed):
    _seed_all(hash(f"start {seed}") % 2**32)
    model = build()
    _seed_all(seed + 1 + dist.get_rank())
    return model
