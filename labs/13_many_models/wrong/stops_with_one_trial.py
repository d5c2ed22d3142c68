# caught by: rungs_and_budget, halving_on_workers
"""A rung with one trial ends where others would, and is the last."""


def rungs(trials, eta, least, most):
    count, epoch, found = trials, least, []
    while not found or found[-1][1] < most:
        found.append((count, min(epoch, most)))
        count, epoch = max(count // eta, 1), epoch * eta
    return [rung for place, rung in enumerate(found) if place == 0 or found[place - 1][0] > 1]
