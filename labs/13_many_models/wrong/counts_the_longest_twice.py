# caught by: prediction_of_the_last_end
"""Shares the longest trial out, too."""


def most_seconds(seconds, workers):
    return sum(seconds) / workers + max(seconds)
