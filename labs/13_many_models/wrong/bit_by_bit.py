# caught by: seeds_of_trials
"""An exclusive or of both numbers."""


def seed_of(base_seed, trial):
    return base_seed ^ trial
