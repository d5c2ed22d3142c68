# caught by: prediction_of_the_wait
"""The slowest of those that are waited for, as if there were no others."""


def step_seconds(mean, workers, wait_for):
    return mean * sum(1.0 / number for number in range(1, wait_for + 1))
