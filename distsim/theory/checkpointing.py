"""Checkpoints: the best interval between checkpoints, and the cost of failures.

Times between failures of the whole system are exponential with mean m: with N workers of mean m' each, m = m' / N. A
checkpoint takes C seconds and a restart R seconds. A failure loses the work since the last checkpoint.
"""

from __future__ import annotations

import math

from scipy import special

from distsim.theory.arguments import above, at_least


def system_mean_time_between_seconds(mean_time_between_seconds: float, workers: int) -> float:
    """Mean time between failures if all N workers must be up: m' / N, the mean of the first of N exponential times.

    mean_time_between_seconds: m', of one worker. workers: N.

    >>> system_mean_time_between_seconds(86400.0, workers=64)
    1350.0
    """
    above(0, mean_time_between_seconds=mean_time_between_seconds)
    at_least(1, workers=workers)
    return mean_time_between_seconds / workers


def young_interval_seconds(checkpoint_seconds: float, mean_time_between_seconds: float) -> float:
    """Work between checkpoints by the first-order rule: sqrt(2 C m).

    The rule minimizes C / tau + tau / (2 m): the checkpoints, and half an interval lost per failure. Source: Young
    1974, A first order approximation to the optimum checkpoint interval.

    checkpoint_seconds: C. mean_time_between_seconds: m, of the system.

    >>> round(young_interval_seconds(60.0, 14400.0), 1)
    1314.5
    """
    at_least(0, checkpoint_seconds=checkpoint_seconds)
    above(0, mean_time_between_seconds=mean_time_between_seconds)
    return math.sqrt(2 * checkpoint_seconds * mean_time_between_seconds)


def daly_interval_seconds(checkpoint_seconds: float, mean_time_between_seconds: float) -> float:
    """Work between checkpoints by the higher-order rule: sqrt(2 C m) (1 + x / 3 + x^2 / 9) - C, x = sqrt(C / (2 m)).

    For C < 2 m; beyond that m. Source: Daly 2006, A higher order estimate of the optimum checkpoint interval for
    restart dumps. The tests repeat his examples (C = 5 min; m = 24 h, 6 h and 15 min: 117, 57 and 9.1 min).

    checkpoint_seconds: C. mean_time_between_seconds: m, of the system.

    >>> round(daly_interval_seconds(60.0, 14400.0), 1)
    1274.8
    """
    first_order = young_interval_seconds(checkpoint_seconds, mean_time_between_seconds)
    if checkpoint_seconds >= 2 * mean_time_between_seconds:
        return mean_time_between_seconds
    x = math.sqrt(checkpoint_seconds / (2 * mean_time_between_seconds))
    return first_order * (1 + x / 3 + x * x / 9) - checkpoint_seconds


def best_interval_seconds(checkpoint_seconds: float, mean_time_between_seconds: float) -> float:
    """The interval with the highest `goodput`, exactly: m (1 + W0(-exp(-1 - C / m))), W0 Lambert's function.

    The derivative of tau / (exp((tau + C) / m) - 1) is zero where (1 - tau / m) exp((tau + C) / m) = 1; Daly's rule
    (2006) is the expansion of this tau. R does not matter, nor whether failures strike during a restart.

    checkpoint_seconds: C. mean_time_between_seconds: m, of the system.

    >>> round(best_interval_seconds(60.0, 14400.0), 1)
    1274.8
    """
    at_least(0, checkpoint_seconds=checkpoint_seconds)
    above(0, mean_time_between_seconds=mean_time_between_seconds)
    inverse = special.lambertw(-math.exp(-1 - checkpoint_seconds / mean_time_between_seconds))
    return float(mean_time_between_seconds * (1 + inverse.real))


def _mean_seconds_without_failure(
    seconds: float, restart_seconds: float, mean_time_between_seconds: float, fails_while_restarting: bool = True
) -> float:
    """Mean time until `seconds` have passed without a failure: (exp(s / m) - 1) m exp(R / m), restarts included.

    Renewal: T = s without a failure; otherwise the time until the failure, a restart, and T again. If failures strike
    during a restart as well, a restart takes m (exp(R / m) - 1) by the same argument. Otherwise a restart takes R, and
    m exp(R / m) becomes m + R. Source: Daly 2006, the complete cost function.

    seconds: s. restart_seconds: R. mean_time_between_seconds: m, of the system.
    """
    at_least(0, seconds=seconds, restart_seconds=restart_seconds)
    above(0, mean_time_between_seconds=mean_time_between_seconds)
    mean = mean_time_between_seconds
    restarting = mean * math.expm1(restart_seconds / mean) if fails_while_restarting else restart_seconds
    return math.expm1(seconds / mean) * (mean + restarting)


def goodput(
    interval_seconds: float,
    checkpoint_seconds: float,
    restart_seconds: float,
    mean_time_between_seconds: float,
    fails_while_restarting: bool = True,
) -> float:
    """The share of time spent on work that no failure loses: tau / T(tau + C), T of `_mean_seconds_without_failure`.

    interval_seconds: tau, of work between checkpoints. checkpoint_seconds: C. restart_seconds: R.
    mean_time_between_seconds: m, of the system.

    >>> round(goodput(1274.8, checkpoint_seconds=60.0, restart_seconds=120.0, mean_time_between_seconds=14400.0), 4)
    0.9039
    """
    above(0, interval_seconds=interval_seconds)
    at_least(0, checkpoint_seconds=checkpoint_seconds)
    segment = _mean_seconds_without_failure(
        interval_seconds + checkpoint_seconds, restart_seconds, mean_time_between_seconds, fails_while_restarting
    )
    return interval_seconds / segment


def expected_run_seconds(
    work_seconds: float,
    interval_seconds: float,
    checkpoint_seconds: float,
    restart_seconds: float,
    mean_time_between_seconds: float,
    fails_while_restarting: bool = True,
) -> float:
    """Mean time of a run: T(tau + C) for each interval followed by a checkpoint, T(rest) for the last interval.

    No checkpoint follows the last interval. T is that of `_mean_seconds_without_failure`.

    work_seconds: of all steps together. interval_seconds: tau. checkpoint_seconds: C. restart_seconds: R.
    mean_time_between_seconds: m, of the system.

    >>> round(expected_run_seconds(1000.0, 400.0, 10.0, 0.0, mean_time_between_seconds=1e12), 3)
    1020.0
    """
    above(0, interval_seconds=interval_seconds)
    at_least(0, work_seconds=work_seconds, checkpoint_seconds=checkpoint_seconds)
    checkpoints = max(math.ceil(work_seconds / interval_seconds * (1 - 1e-12)) - 1, 0)
    failures = (restart_seconds, mean_time_between_seconds, fails_while_restarting)
    each = _mean_seconds_without_failure(interval_seconds + checkpoint_seconds, *failures)
    return checkpoints * each + _mean_seconds_without_failure(work_seconds - checkpoints * interval_seconds, *failures)
