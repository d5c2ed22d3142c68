# caught by: chosen_without_the_test_set
"""Chooses by the sum of the losses."""


def select(validation, test):
    means = {number: sum(losses) for number, losses in enumerate(validation)}
    (chosen,) = keep_best(means, 1)
    return chosen, means[chosen] / len(validation[chosen]), test(chosen)
