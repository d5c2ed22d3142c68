# caught by: seeds_of_trials
"""The base seed changes nothing."""


def seed_of(base_seed, trial):
    return trial
