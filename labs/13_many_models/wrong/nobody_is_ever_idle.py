# caught by: prediction_of_the_last_end
"""The mean share."""


def most_seconds(seconds, workers):
    return sum(seconds) / workers
