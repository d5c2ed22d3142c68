# caught by: chosen_without_the_test_set
"""Takes the loss of validation for that of the test set."""


def select(validation, test):
    means = {number: sum(losses) / len(losses) for number, losses in enumerate(validation)}
    (chosen,) = keep_best(means, 1)
    return chosen, means[chosen], means[chosen]
