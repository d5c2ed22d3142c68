# caught by: rate_at_each_update, training_as_one_process
"""The square root of the factor: another rule."""

_linear = learning_rate


def learning_rate(update, rate, growth, warm_up):
    return _linear(update, rate, growth**0.5, warm_up)
