# caught by: rungs_and_budget
"""Takes nan for inf."""


def keep_best(losses, count):
    return sorted(losses, key=lambda trial: (math.inf if math.isnan(losses[trial]) else losses[trial], trial))[:count]
