# caught by: seeds_of_trials, every_trial_once, no_trial_is_lost, halving_on_workers
"""The seed depends on how many were asked for before."""

seeds = {}


def seed_of(base_seed, trial):
    seeds.setdefault((base_seed, trial), base_seed * 2**31 + len(seeds))
    return seeds[base_seed, trial]
