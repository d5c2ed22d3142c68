# caught by: prediction_of_a_shared_step
"""Everybody waits for the slowest worker, as without helpers."""


def shared_step_seconds(items, seconds):
    return items * max(seconds)
