# caught by: seeds_of_trials
"""Has room for a million trials of each base seed."""


def seed_of(base_seed, trial):
    return 1_000_000 * base_seed + trial
