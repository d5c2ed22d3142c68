# caught by: prediction_of_the_last_end
"""Right where all trials are equally long, and workers divide their number."""


def most_seconds(seconds, workers):
    return -(-len(seconds) // workers) * max(seconds)
