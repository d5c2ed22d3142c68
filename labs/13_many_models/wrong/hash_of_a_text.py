# caught by: seeds_of_trials, every_trial_once, no_trial_is_lost, halving_on_workers
"""Each process has another hash of a string."""


def seed_of(base_seed, trial):
    return hash(f"{base_seed} {trial}") % 2**63
