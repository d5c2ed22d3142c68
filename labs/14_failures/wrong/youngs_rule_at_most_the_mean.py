# caught by: an_interval_near_the_best
"""Better than Young's rule, and 1.3 % from the best where a checkpoint takes as long as it takes to fail."""


def best_interval(write_seconds, mean_seconds, ranks):
    mean = mean_seconds / ranks
    return min(math.sqrt(2 * write_seconds * mean), mean)
