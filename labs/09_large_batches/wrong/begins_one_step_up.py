# caught by: rate_at_each_update, training_as_one_process
"""Update 0 is one step above the base rate, so the full rate comes one update too early."""


def learning_rate(update, rate, growth, warm_up):
    share = min((update + 1) / warm_up, 1.0) if warm_up else 1.0
    return rate + (growth - 1) * rate * share
