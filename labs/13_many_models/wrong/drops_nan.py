# caught by: rungs_and_budget, halving_on_workers, chosen_without_the_test_set
"""Never keeps a trial with a loss of nan."""


def keep_best(losses, count):
    return sorted(
        (trial for trial in losses if not math.isnan(losses[trial])), key=lambda trial: (losses[trial], trial)
    )[:count]
