# caught by: seeds_of_trials
"""Adds a multiple of the base seed: trial 2,147,483,629 of base seed 0 has the seed of trial 0 of base seed 1."""


def seed_of(base_seed, trial):
    return base_seed * 2_147_483_629 + trial
