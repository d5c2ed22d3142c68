# caught by: prediction_of_the_largest_staleness
"""Forgets that others may begin behind."""


def largest_staleness(workers, staleness):
    return (workers - 1) * (staleness + 1)
