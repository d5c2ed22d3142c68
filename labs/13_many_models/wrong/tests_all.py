# caught by: chosen_without_the_test_set
"""Asks the test set for all configurations."""


def select(validation, test):
    means = {number: sum(losses) / len(losses) for number, losses in enumerate(validation)}
    (chosen,) = keep_best(means, 1)
    return chosen, means[chosen], [test(number) for number in means][chosen]
