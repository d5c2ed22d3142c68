# caught by: rungs_and_budget, halving_on_workers
"""Returns the best ones in the order of their numbers."""

right = keep_best


def keep_best(losses, count):
    return sorted(right(losses, count))
