# caught by: rate_at_each_update
"""A rate below the base rate is not thought of. Right where the batch grows."""

_right = learning_rate


def learning_rate(update, rate, growth, warm_up):
    return max(rate, _right(update, rate, growth, warm_up))
