# caught by: seeds_of_trials, every_trial_once, no_trial_is_lost, halving_on_workers
"""A number of numpy, where int is asked for."""


def seed_of(base_seed, trial):
    return np.random.SeedSequence(base_seed, spawn_key=(trial,)).generate_state(1, np.uint64)[0] >> np.uint64(1)
