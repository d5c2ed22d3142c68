# caught by: an_interval_near_the_best
"""Takes the time of the checkpoint off. Nothing is left where checkpoints are dear."""


def best_interval(write_seconds, mean_seconds, ranks):
    mean = mean_seconds / ranks
    return max(math.sqrt(2 * write_seconds * mean) - write_seconds, 1.0)
