# caught by: seeds_of_trials
"""Trials of more than 16 bits come again."""


def seed_of(base_seed, trial):
    return base_seed * 2**16 + trial % 2**16
