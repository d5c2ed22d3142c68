# caught by: rate_at_each_update, training_as_one_process
"""The warm-up begins with a rate of 0. Right at its end."""


def learning_rate(update, rate, growth, warm_up):
    return growth * rate * (min(update / warm_up, 1.0) if warm_up else 1.0)
