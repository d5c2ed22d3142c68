# caught by: longest_first
"""Gives trials to workers by turns."""


def plan(expected, workers):
    planned = [(0, 0.0)] * len(expected)
    until = [0.0] * workers
    for turn, trial in enumerate(sorted(range(len(expected)), key=lambda trial: -expected[trial])):
        worker = turn % workers
        start = until[worker]
        until[worker] += expected[trial]
        planned[trial] = (worker, start)
    return planned
