# caught by: samples_disjoint_complete_and_even
"""As much work as one process has."""


def own_samples(count):
    return list(range(count))
