# caught by: rate_at_each_update, training_as_one_process
"""No warm-up. Right after the warm-up."""


def learning_rate(update, rate, growth, warm_up):
    return growth * rate
