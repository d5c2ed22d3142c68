"""Many trials: T independent trainings on W workers, one per worker, against the same trials one after the other.

Trials need no communication; data parallelism makes each one faster, by its speed-up, which communication limits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distsim.errors import InputError
from distsim.theory.arguments import above, at_least
from distsim.theory.order_statistics import harmonic


def parallel_trials_seconds(trial_seconds: Sequence[float], workers: int) -> float:
    """When the last trial ends, if each worker takes the next one in order as soon as it is free.

    At least max(sum / W, longest), and never more than 2 - 1 / W times the best possible
    (Graham 1966, Bounds for certain multiprocessing anomalies).

    trial_seconds: how long each trial takes on one worker, in the order of starting. workers: W.

    >>> parallel_trials_seconds([3.0, 1.0, 1.0, 2.0], workers=2)
    4.0
    """
    at_least(1, workers=workers)
    _check(trial_seconds)
    free = np.zeros(workers)
    for seconds in trial_seconds:
        free[free.argmin()] += seconds
    return float(free.max())


def trials_one_after_the_other_seconds(trial_seconds: Sequence[float], speed_up: float) -> float:
    """When the last trial ends, if all workers train one trial at a time with data parallelism: sum / S.

    trial_seconds: how long each trial takes on one worker. speed_up: S, of data parallelism on all workers.

    >>> trials_one_after_the_other_seconds([3.0, 1.0, 1.0, 3.0], speed_up=1.6)
    5.0
    """
    above(0, speed_up=speed_up)
    _check(trial_seconds)
    return float(np.sum(trial_seconds)) / speed_up


def equal_trials_seconds(trial_seconds: float, trials: int, workers: int) -> float:
    """T trials alike on W workers: ceil(T / W) x.

    >>> equal_trials_seconds(60.0, trials=10, workers=4)
    180.0
    """
    at_least(0, trial_seconds=trial_seconds, trials=trials)
    at_least(1, workers=workers)
    return -(-trials // workers) * trial_seconds


def trials_speed_up(trials: int, workers: int) -> float:
    """How much faster T trials alike end on W workers than on one: T / ceil(T / W); W if it divides T.

    Data parallelism with a speed-up below this ends later.

    >>> trials_speed_up(10, workers=4), trials_speed_up(12, workers=4)
    (3.3333333333333335, 4.0)
    """
    at_least(1, trials=trials)
    return trials / equal_trials_seconds(1.0, trials, workers)


def exponential_trials_seconds(mean_seconds: float, trials: int, workers: int) -> float:
    """The mean of `parallel_trials_seconds` for exponential lengths: m ((T - W) / W + H_W), or m H_T if T < W.

    While trials wait, one ends every m / W; the last W have nobody behind them and end like a synchronous step.

    mean_seconds: m, of one trial. trials: T. workers: W.

    >>> round(exponential_trials_seconds(1.0, trials=12, workers=4), 6)    # 8 / 4 + 25 / 12
    4.083333
    """
    at_least(0, mean_seconds=mean_seconds, trials=trials)
    at_least(1, workers=workers)
    return mean_seconds * (max(trials - workers, 0) / workers + harmonic(min(trials, workers)))


def _check(trial_seconds: Sequence[float]) -> None:
    if not (np.asarray(trial_seconds, dtype=float) >= 0).all():
        raise InputError.of("trial_seconds", list(trial_seconds), "must all be at least 0", "give their lengths")
