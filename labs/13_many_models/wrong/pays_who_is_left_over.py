# caught by: rungs_and_budget
"""Multiplies the epochs by the trials of the rung before."""


def paid_epochs(rungs):
    return sum(before * (stop - start) for (before, start), (_, stop) in pairwise([(0, 0), *rungs]))
