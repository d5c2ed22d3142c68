"""Hyperparameter search: k independent trials on N workers, one per worker, against one trial after the other.

Trials need no communication. Data parallelism makes each trial faster by its speed-up, which communication limits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import integrate, special

from distsim.theory.arguments import above, at_least


def trials_speed_up(trials: int, workers: int) -> float:
    """Speed-up of k equal trials on N workers over one worker: k / ceil(k / N), which is N if N divides k.

    Data parallelism with a smaller speed-up takes longer.

    >>> trials_speed_up(10, workers=4), trials_speed_up(12, workers=4)
    (3.3333333333333335, 4.0)
    """
    at_least(1, trials=trials, workers=workers)
    return trials / -(-trials // workers)


def trials_against_data_parallel(trials: int, workers: int, speed_up: float) -> float:
    """How many times as long k equal trials take one after the other on N workers as all at once: k / (S ceil(k / N)).

    speed_up: S, of a trial on all N workers, by data parallelism. Below 1, the trials are better run one by one.

    >>> trials_against_data_parallel(16, workers=4, speed_up=2.5)
    1.6
    >>> round(trials_against_data_parallel(5, workers=4, speed_up=2.5), 9)    # the fifth leaves three workers idle
    1.0
    """
    above(0, speed_up=speed_up)
    return trials_speed_up(trials, workers) / speed_up


def least_search_seconds(seconds: Sequence[float], workers: int) -> float:
    """A bound that no order of the trials can beat: the longest trial, or all of them divided evenly.

    >>> least_search_seconds([6.0, 3.0, 2.0, 1.0], workers=2), least_search_seconds([2.0, 2.0, 2.0], workers=2)
    (6.0, 3.0)
    """
    at_least(1, workers=workers, trials=len(seconds))
    above(0, **{f"seconds[{number}]": value for number, value in enumerate(seconds)})
    return max(max(seconds), sum(seconds) / workers)


def list_scheduling_bound(workers: int, longest_first: bool = False) -> float:
    """How many times as long as the best order of the trials any order takes at most, on N equal workers.

    2 - 1 / N if an idle worker takes the next trial, whatever it is (Graham 1966, Bounds for certain multiprocessing
    anomalies). 4 / 3 - 1 / (3 N) if it takes the longest of those left (Graham 1969, Bounds on multiprocessing timing
    anomalies).

    >>> list_scheduling_bound(4), list_scheduling_bound(4, longest_first=True)
    (1.75, 1.25)
    """
    at_least(1, workers=workers)
    return 4 / 3 - 1 / (3 * workers) if longest_first else 2 - 1 / workers


def different_settings(values: int, trials: int) -> float:
    """The mean number of different settings that k random trials try, of v equally likely ones: v (1 - (1 - 1 / v)^k).

    >>> different_settings(4, trials=4)
    2.734375
    """
    at_least(1, values=values, trials=trials)
    return values * (1 - (1 - 1 / values) ** trials)


def best_of(trials: int) -> float:
    """How far the best of k equally good trials seems better than they are, in standard deviations of a measurement.

    The mean of the largest of k normal values (David and Nagaraja, Order Statistics).

    >>> [round(best_of(trials), 2) for trials in (1, 4, 16, 64)]
    [0.0, 1.03, 1.77, 2.34]
    """
    at_least(1, trials=trials)

    def above_zero(t: float) -> float:
        """P(largest > t) - P(largest < -t), whose integral from 0 on is the mean."""
        return float(1.0 - special.ndtr(t) ** trials - special.ndtr(-t) ** trials)

    return float(integrate.quad(above_zero, 0.0, np.inf, epsabs=1e-10)[0])
