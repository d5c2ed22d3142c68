# caught by: chosen_without_the_test_set
"""Chooses by the loss on the test set."""


def select(validation, test):
    means = {number: sum(losses) / len(losses) for number, losses in enumerate(validation)}
    chosen = min(means, key=test)
    return chosen, means[chosen], test(chosen)
