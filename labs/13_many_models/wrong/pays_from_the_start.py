# caught by: rungs_and_budget
"""Counts each trial from epoch 0."""


def paid_epochs(rungs):
    return sum(count * stop for (_, start), (count, stop) in pairwise([(0, 0), *rungs]))
