# caught by: seeds_of_trials, every_trial_once, no_trial_is_lost, halving_on_workers
"""Another seed on each rank."""


def seed_of(base_seed, trial):
    return int(
        np.random.SeedSequence(base_seed, spawn_key=(trial, dist.get_rank())).generate_state(1, np.uint64)[0]
        >> np.uint64(1)
    )
