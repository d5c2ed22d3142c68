# caught by: rungs_and_budget, halving_on_workers, chosen_without_the_test_set
"""Of equal losses, takes the one that stands first."""


def keep_best(losses, count):
    return sorted(losses, key=lambda trial: math.inf if math.isnan(losses[trial]) else losses[trial])[:count]
