# caught by: an_interval_near_the_best
"""Does not ask what a checkpoint costs."""


def best_interval(write_seconds, mean_seconds, ranks):
    return mean_seconds / ranks / 2
