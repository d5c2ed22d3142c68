"""Local SGD: workers average their parameters every H steps, so that H steps share one wait and one all-reduce.

A sum varies less than its terms, relative to its mean. So the slowest of N workers loses less of H steps taken together
than it loses of each step taken alone.
Source: Wang and Joshi 2019, Adaptive communication strategies to achieve the best error-runtime trade-off in
local-update SGD (arXiv 1810.08313), section 3.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from distsim.arrays import Floats
from distsim.theory.arguments import above, at_least
from distsim.theory.order_statistics import integral_of_survival


def exponential_local_step_seconds(mean_seconds: float, workers: int, period: int) -> float:
    """Mean local step with exponential times and free communication: E[max of N sums of H] / H.

    A sum of H exponential times is Erlang distributed with P(sum > t) = Q(H, t / m), the regularized upper incomplete
    gamma function; the mean of the largest is the integral over t of 1 - (1 - Q(H, t / m))^N, found numerically.
    H = 1 is synchronous training, m H_P. For large H the mean tends to m.

    mean_seconds: m. workers: N. period: H.

    >>> [round(exponential_local_step_seconds(1.0, workers=16, period=period), 3) for period in (1, 10, 50)]
    [3.381, 1.634, 1.265]
    """
    above(0, mean_seconds=mean_seconds)
    at_least(1, workers=workers, period=period)

    def some_worker_is_busy(t: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.expm1(workers * np.log1p(-special.gammaincc(period, t))))

    levels = special.expit(np.arange(-36.0, 36.25, 0.25))
    mesh = np.unique(special.gammaincinv(period, levels))
    return mean_seconds * integral_of_survival(some_worker_is_busy, mesh) / period


def long_period_local_step_seconds(mean_seconds: float, cv: float, workers: int, period: int) -> float:
    """Mean local step for long periods and any distribution: m (1 + cv e_N / sqrt(H)), approximately.

    By the central limit theorem a sum of H times is nearly normal. e_N is the mean of the largest of N standard normal
    numbers. Skewed times need longer periods: for exponential times and N = 16 the formula is 5 % off at H = 10.

    mean_seconds: m. cv: standard deviation / mean. workers: N. period: H.

    >>> round(long_period_local_step_seconds(1.0, 1.0, workers=16, period=50), 3)
    1.25
    """
    above(0, mean_seconds=mean_seconds)
    at_least(0, cv=cv)
    at_least(1, workers=workers, period=period)

    def above_less_below(t: Floats) -> Floats:
        """P(largest > t) - P(largest < -t). The integral of this over t > 0 is the mean of the largest."""
        return np.asarray(-np.expm1(workers * special.log_ndtr(t)) - special.ndtr(-t) ** workers)

    largest = integral_of_survival(above_less_below, np.linspace(0.0, 40.0, 161))
    return float(mean_seconds * (1 + cv * largest / np.sqrt(period)))


def local_sgd_step_seconds(local_step_seconds: float, all_reduce_seconds: float, period: int) -> float:
    """Time per local step with one all-reduce of the parameters every H steps: x + c / H.

    local_step_seconds: x, of one of the functions above. all_reduce_seconds: c. period: H.

    >>> local_sgd_step_seconds(0.1, all_reduce_seconds=0.4, period=8)
    0.15000000000000002
    """
    at_least(0, local_step_seconds=local_step_seconds, all_reduce_seconds=all_reduce_seconds)
    at_least(1, period=period)
    return local_step_seconds + all_reduce_seconds / period
