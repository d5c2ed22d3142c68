# caught by: rungs_and_budget
"""Has a rung too many where a logarithm is rounded up: that of 125 to the base 5 is a little more than 3."""


def rungs(trials, eta, least, most):
    found = []
    for power in range(math.ceil(math.log(most / least, eta)) + 1 if most > least else 1):
        count = max(trials // eta**power, 1)
        found.append((count, most if count == 1 else min(least * eta**power, most)))
        if count == 1:
            break
    return found
