# caught by: prediction_of_the_largest_staleness
"""Counts the steps of one other worker."""


def largest_staleness(workers, staleness):
    return 2 * staleness + 1
