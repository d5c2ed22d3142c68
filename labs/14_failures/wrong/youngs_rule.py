# caught by: an_interval_near_the_best
"""Right where checkpoints are cheap."""


def best_interval(write_seconds, mean_seconds, ranks):
    return math.sqrt(2 * write_seconds * mean_seconds / ranks)
