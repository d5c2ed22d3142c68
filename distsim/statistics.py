"""The mean of several runs and its uncertainty: Student's confidence interval, and a one-sided test for pairs of runs.

The functions import scipy.stats, since the import takes a second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean, and the ends of its confidence interval."""

    mean: float
    low: float
    high: float

    def within(self, least: float, most: float) -> Interval:
        """The interval cut at bounds between which the values lie, such as 0 and 1 of shares.

        Their mean lies between these bounds, so the cut interval holds the mean as often as the whole interval.

        >>> interval([0.98, 0.99, 1.0]).within(0.0, 1.0).high
        1.0
        """
        return Interval(self.mean, max(self.low, least), min(self.high, most))


def interval(values: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Student's confidence interval for the mean of `values`, one value per seed.

    >>> found = interval([1.0, 2.0, 3.0])    # 4.30 standard errors of 3 ** -0.5 to either side
    >>> found.mean, round(found.low, 3), round(found.high, 3)
    (2.0, -0.484, 4.484)
    """
    (found,) = intervals(np.asarray(values, dtype=float)[:, np.newaxis], confidence)
    return found


def intervals(values: ArrayLike, confidence: float = CONFIDENCE) -> list[Interval]:
    """The interval of each column of `values`, shape (seeds, columns).

    >>> [one.mean for one in intervals([[1.0, 5.0], [2.0, 7.0]])]
    [1.5, 6.0]
    """
    from scipy import stats

    found = np.asarray(values, dtype=float)
    means = found.mean(axis=0)
    reaches = float(stats.t.ppf((1.0 + confidence) / 2.0, len(found) - 1)) * stats.sem(found, axis=0)
    columns = (means, means - reaches, means + reaches)
    return [Interval(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]


def chance_that_none_is_larger(larger: ArrayLike, smaller: ArrayLike) -> float:
    """The p-value of Student's paired one-sided test: small where `larger` exceeds `smaller` on average.

    >>> round(chance_that_none_is_larger([2.0, 3.0, 4.5], [1.0, 2.0, 3.0]), 4)
    0.0099
    """
    from scipy import stats

    found = stats.ttest_rel(np.asarray(larger, dtype=float), np.asarray(smaller, dtype=float), alternative="greater")
    return float(found.pvalue)
