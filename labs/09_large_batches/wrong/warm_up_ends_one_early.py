# caught by: rate_at_each_update, training_as_one_process
"""The last update of the warm-up has the full rate already. Right at 0 and afterwards."""


def learning_rate(update, rate, growth, warm_up):
    share = min(update / (warm_up - 1), 1.0) if warm_up > 1 else float(update >= warm_up)
    return rate + (growth - 1) * rate * share
