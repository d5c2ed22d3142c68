# caught by: seeds_of_trials
"""Adds a multiple of the trial: trial 1 of base seed 0 has the seed of trial 0 of base seed 1,000,003."""


def seed_of(base_seed, trial):
    return base_seed + 1_000_003 * trial
