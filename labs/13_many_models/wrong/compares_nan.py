# caught by: rungs_and_budget, halving_on_workers, chosen_without_the_test_set
"""Sorts nan as any other number."""


def keep_best(losses, count):
    return sorted(losses, key=lambda trial: (losses[trial], trial))[:count]
