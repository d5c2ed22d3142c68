# caught by: an_interval_near_the_best
"""Right for one rank: many ranks fail many times as often."""


def best_interval(write_seconds, mean_seconds, ranks):
    mean = mean_seconds
    root = math.sqrt(write_seconds / (2 * mean))
    return 2 * mean * root * (1 + root / 3 + root * root / 9) - write_seconds if root < 1 else mean
