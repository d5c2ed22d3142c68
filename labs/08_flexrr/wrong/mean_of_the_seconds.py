# caught by: prediction_of_a_shared_step
"""Takes the mean of the seconds in place of the sum of the speeds."""


def shared_step_seconds(items, seconds):
    return items * sum(seconds) / len(seconds)
