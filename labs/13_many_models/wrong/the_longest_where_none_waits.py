# caught by: prediction_of_the_last_end
"""Has another formula for as many workers as trials, or more."""


def most_seconds(seconds, workers):
    longest = max(seconds)
    return longest if len(seconds) <= workers else (sum(seconds) - longest) / workers + longest
