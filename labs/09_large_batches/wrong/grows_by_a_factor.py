# caught by: rate_at_each_update, training_as_one_process
"""The rate grows by the same factor from update to update. Right at both ends."""


def learning_rate(update, rate, growth, warm_up):
    return rate * growth ** (min(update / warm_up, 1.0) if warm_up else 1.0)
