# caught by: prediction_of_the_wait
"""What one worker takes."""


def step_seconds(mean, workers, wait_for):
    return mean
