# caught by: an_interval_near_the_best
"""Daly's rule ends where a checkpoint takes twice as long as it takes to fail."""


def best_interval(write_seconds, mean_seconds, ranks):
    mean = mean_seconds / ranks
    root = math.sqrt(write_seconds / (2 * mean))
    return 2 * mean * root * (1 + root / 3 + root * root / 9) - write_seconds
