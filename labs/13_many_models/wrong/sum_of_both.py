# caught by: seeds_of_trials
"""Adds the trial to the base seed."""


def seed_of(base_seed, trial):
    return base_seed + trial
