"""A straight line through measured times: seconds = fixed x messages + unit x amount, neither of them negative.

The fit minimizes the squares of the relative errors, so all sizes weigh the same. The intervals are bootstrap
percentiles (Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13): the repeats of every size are
drawn with replacement, and the line is fitted to their medians, 400 times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from distsim.arrays import Floats
from distsim.calibration.exchange import Time
from distsim.validated_table import ValidatedTable

RESAMPLES = 400
CONFIDENCE = 0.95
POOR_MISS = 0.25  # a fit is poor if its largest relative error is above this

Interval = tuple[Time, Time]


class Line(ValidatedTable):
    """A fitted line with 95 % confidence intervals.

    fixed_seconds: per message. unit_seconds: per byte, sample or bucket. r_squared: the share of the variance that
    the line explains. largest_miss: the largest relative error at a measured median.

    >>> line = fit_line([[1, 0.0], [1, 1e6], [1, 4e6]], [[0.001], [0.002], [0.005]])
    >>> round(line.fixed_seconds, 9), round(line.unit_seconds, 15), line.poor
    (0.001, 1e-09, False)
    """

    fixed_seconds: Time
    fixed_interval: Interval
    unit_seconds: Time
    unit_interval: Interval
    r_squared: float
    largest_miss: Time

    @property
    def poor(self) -> bool:
        """Whether the line is more than 25 % off a measured time."""
        return self.largest_miss > POOR_MISS


def fit_line(rows: ArrayLike, samples: Sequence[ArrayLike], seed: int = 0) -> Line:
    """The line through the medians of `samples`: for each row (messages, amount) the seconds of its repeats."""
    terms = np.asarray(rows, dtype=np.float64)
    repeats = [np.asarray(sample, dtype=np.float64) for sample in samples]
    medians = np.array([[np.median(sample) for sample in repeats]])
    (found,) = _solved(terms, medians)
    generator = np.random.default_rng(seed)
    drawn = np.stack(
        [np.median(generator.choice(sample, (RESAMPLES, len(sample))), axis=1) for sample in repeats], axis=1
    )
    low, high = np.quantile(_solved(terms, drawn), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    told, misses = medians[0], terms @ found - medians[0]
    spread = float(np.sum((told - told.mean()) ** 2))
    return Line(
        fixed_seconds=float(found[0]),
        fixed_interval=(float(low[0]), float(high[0])),
        unit_seconds=float(found[1]),
        unit_interval=(float(low[1]), float(high[1])),
        r_squared=1.0 - float(np.sum(misses**2)) / spread if spread else 1.0,
        largest_miss=float(np.max(np.abs(misses) / told)),
    )


def _solved(rows: Floats, seconds: Floats) -> Floats:
    """Least squares of relative errors; seconds: shape (fits, points). Returns (fixed, unit), shape (fits, 2)."""
    scale = rows.max(axis=0)
    relative = rows / scale / seconds[:, :, None]
    free: Floats = np.linalg.pinv(relative).sum(axis=2)
    # If fixed or unit comes out negative, one of them is set to 0 and the other is fitted alone: the better choice.
    square = np.sum(relative**2, axis=1)
    alone = np.divide(relative.sum(axis=1), square, out=np.zeros_like(square), where=square > 0.0)
    misses = np.sum((relative * alone[:, None, :] - 1.0) ** 2, axis=1)
    edge = np.where(np.arange(2) == np.argmin(misses, axis=1)[:, None], alone, 0.0)
    negative = np.any(free < 0.0, axis=1, keepdims=True)
    return np.asarray(np.where(negative, edge, free) / scale)
