# caught by: prediction_of_a_shared_step
"""Shares the pieces of one worker among all."""


def shared_step_seconds(items, seconds):
    return items / sum(1 / one for one in seconds)
