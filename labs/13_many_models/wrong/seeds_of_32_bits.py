# caught by: seeds_of_trials
"""Takes the first word of numpy, which has 32 bits: of 100,000 trials, two or more probably have one seed."""


def seed_of(base_seed, trial):
    return int(np.random.SeedSequence(base_seed, spawn_key=(trial,)).generate_state(1)[0])
