# caught by: seeds_of_trials
"""Seeds of 64 bits."""


def seed_of(base_seed, trial):
    return int(np.random.SeedSequence(base_seed, spawn_key=(trial,)).generate_state(1, np.uint64)[0])
