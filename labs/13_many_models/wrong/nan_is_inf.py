# caught by: rungs_and_budget, chosen_without_the_test_set
"""Takes nan for inf."""


def keep_best(losses, count):
    return sorted(losses, key=lambda trial: (math.inf if math.isnan(losses[trial]) else losses[trial], trial))[:count]
