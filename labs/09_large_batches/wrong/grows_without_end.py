# caught by: rate_at_each_update
"""The line goes on after the warm-up."""


def learning_rate(update, rate, growth, warm_up):
    return rate + (growth - 1) * rate * update / warm_up if warm_up else growth * rate
