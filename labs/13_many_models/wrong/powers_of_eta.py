# caught by: rungs_and_budget, halving_on_workers
"""Has no rung where eta does not divide."""


def rungs(trials, eta, least, most):
    count, epoch, found = trials, least, []
    while not found or found[-1][1] < most:
        found.append((count, most if count == 1 else min(epoch, most)))
        count, epoch = max(count // eta, 1), epoch * eta
    return [rung for place, rung in enumerate(found) if place == 0 or found[place - 1][0] % eta == 0]
