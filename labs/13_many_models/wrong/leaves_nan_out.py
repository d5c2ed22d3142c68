# caught by: chosen_without_the_test_set
"""Leaves seeds with nan out of the mean."""


def select(validation, test):
    means = {
        number: float(np.nanmean(losses)) if not all(map(math.isnan, losses)) else math.nan
        for number, losses in enumerate(validation)
    }
    (chosen,) = keep_best(means, 1)
    return chosen, means[chosen], test(chosen)
