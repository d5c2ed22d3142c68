# caught by: rungs_and_budget, halving_on_workers
"""A rung with one trial ends where others would."""


def rungs(trials, eta, least, most):
    count, epoch, found = trials, least, []
    while not found or found[-1][1] < most:
        found.append((count, min(epoch, most)))
        count, epoch = max(count // eta, 1), epoch * eta
    return found
