# caught by: chosen_without_the_test_set
"""Takes inf in place of a mean that is nan."""


def select(validation, test):
    means = [sum(losses) / len(losses) for losses in validation]
    chosen = int(np.argmin([math.inf if math.isnan(mean) else mean for mean in means]))
    return chosen, means[chosen], test(chosen)
