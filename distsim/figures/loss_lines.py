"""The lines of the figure `loss`: for each name, the mean loss of its runs along one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distsim.arrays import Floats
from distsim.learning.curve import Curve
from distsim.statistics import intervals

POINTS = 120  # of a mean line, if its runs recorded their losses at different times
DIVERGED = 10.0  # times the first loss: above this, a run has diverged
TAIL = 10  # the final loss is the median over the last tenth of a line


@dataclass(frozen=True)
class Line:
    """The loss of one name along one axis. low, high: the 95 % interval of the mean; for one run, the loss itself.

    whole: False if the line ends early because a run diverged: the loss exceeded ten times the first loss, or was not
    finite.
    """

    name: str
    runs: int
    x: Floats
    loss: Floats
    low: Floats
    high: Floats
    whole: bool

    @property
    def last(self) -> float:
        """The median loss over the last tenth of the line; a single loss may be low or high by noise."""
        return float(np.median(self.loss[-max(1, len(self.x) // TAIL) :]))

    def reaches(self, loss: float) -> float | None:
        """The first place where the line is at or below `loss`; None if there is no such place."""
        reached = np.flatnonzero(self.loss <= loss)
        return float(self.x[reached[0]]) if len(reached) else None


def line_of(name: str, runs: Sequence[Curve], column: str) -> Line:
    """The line of `runs`, one run per seed, along "seconds", "update" or "samples". It ends with the shortest run.

    Between two recorded losses, the earlier loss holds.
    """
    along = [np.asarray(getattr(curve, column), dtype=np.float64) for curve in runs]
    if all(np.array_equal(own, along[0]) for own in along):
        x, losses = along[0], np.array([curve.loss for curve in runs], dtype=np.float64)
    else:
        x = np.linspace(0.0, min(own[-1] for own in along), POINTS)
        losses = np.array(
            [curve.loss[np.searchsorted(own, x, side="right") - 1] for curve, own in zip(runs, along, strict=True)]
        )
    sound = (np.isfinite(losses) & (losses <= DIVERGED * np.abs(losses[:, :1]))).all(axis=0)
    end = len(x) if sound.all() else int(np.argmin(sound))
    x, losses = x[:end], losses[:, :end]
    if len(runs) == 1:
        return Line(name, 1, x, losses[0], losses[0], losses[0], bool(sound.all()))
    means, lows, highs = np.array(intervals(losses)).reshape(-1, 3).T
    return Line(name, len(runs), x, means, lows, highs, bool(sound.all()))


def common_target(lines: Sequence[Line]) -> float | None:
    """The lowest loss that all lines without divergence reach; None where a line never falls below its first loss.

    This is the highest median over the last tenth of a line; single values may be lower by noise.

    >>> line = Line("a", 1, np.arange(3.0), np.array([2.0, 0.7, 0.5]), *np.zeros((2, 3)), whole=True)
    >>> common_target([line])
    0.5
    """
    whole = [line for line in lines if line.whole]
    if not whole:
        return None
    target = max(line.last for line in whole)
    return target if target < min(float(line.loss[0]) for line in whole) else None


def spread(values: Floats) -> float:
    """The largest of `values` over the least; infinite where a value is not above 0, and 1 for no values.

    >>> spread(np.array([0.5, 2.0])), spread(np.array([0.0, 2.0])), spread(np.array([]))
    (4.0, inf, 1.0)
    """
    if not len(values):
        return 1.0
    return float(values.max() / values.min()) if values.min() > 0.0 else math.inf
