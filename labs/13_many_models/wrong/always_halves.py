# caught by: rungs_and_budget, halving_on_workers
"""Keeps half, whatever eta is."""


def rungs(trials, eta, least, most):
    count, epoch, found = trials, least, []
    while not found or found[-1][1] < most:
        found.append((count, most if count == 1 else min(epoch, most)))
        count, epoch = max(count // 2, 1), epoch * eta
    return found
