# caught by: rungs_and_budget, halving_on_workers
"""Puts nan last, but then compares one nan with another."""


def keep_best(losses, count):
    return sorted(losses, key=lambda trial: (math.isnan(losses[trial]), losses[trial], trial))[:count]
