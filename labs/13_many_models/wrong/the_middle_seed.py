# caught by: chosen_without_the_test_set
"""Chooses by the median."""


def select(validation, test):
    means = {number: float(np.median(losses)) for number, losses in enumerate(validation)}
    (chosen,) = keep_best(means, 1)
    return chosen, means[chosen], test(chosen)
