# caught by: seeds_of_trials
"""Mixes the sum and the product, so both may change places."""


def seed_of(base_seed, trial):
    return int(np.random.SeedSequence([base_seed + trial, base_seed * trial]).generate_state(2, np.uint32)[0])
