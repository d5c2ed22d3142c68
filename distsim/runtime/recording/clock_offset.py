"""How far the clocks of several machines are apart, estimated from round trips between them and the first rank.

    own clock      asked ----------------------> answered
                         \\                     /
    rank 0's clock        ------> told --------

If both directions take equally long, `told` is in the middle between `asked` and `answered`. In any case the estimate
is wrong by at most half the round trip (Cristian 1989). So the estimate is the median over the quickest trips, and its
uncertainty is the bound of the slowest of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

QUICKEST = 8  # trips that count


@dataclass(frozen=True)
class Offset:
    """The offset from this machine's clock to rank 0's clock, and the largest error of the offset, in seconds."""

    seconds: float = 0.0
    uncertainty_seconds: float = 0.0

    def table(self) -> dict[str, Any]:
        """The offset in values that JSON can hold."""
        return {"offset_seconds": self.seconds, "uncertainty_seconds": self.uncertainty_seconds}


NONE = Offset()


def estimated(trips: Sequence[tuple[float, float, float]]) -> Offset:
    """The offset from round trips (asked, told, answered), the middle one on rank 0's clock.

    >>> estimated([(0.0, 1000.5, 1.0), (2.0, 1002.25, 2.5), (3.0, 1011.0, 19.0)])
    Offset(seconds=1000.0, uncertainty_seconds=8.0)
    """
    quickest = sorted(trips, key=lambda trip: trip[2] - trip[0])[:QUICKEST]
    middle = median(told - (asked + answered) / 2 for asked, told, answered in quickest)
    return Offset(middle, max(answered - asked for asked, _, answered in quickest) / 2)


def between(before: Offset, after: Offset) -> Offset:
    """The offset for the time between two estimates. Its uncertainty includes the drift of the clocks.

    >>> between(Offset(1.0, 0.25), Offset(2.0, 0.5))
    Offset(seconds=1.5, uncertainty_seconds=1.0)
    """
    drift = abs(after.seconds - before.seconds) / 2
    uncertainty = max(before.uncertainty_seconds, after.uncertainty_seconds) + drift
    return Offset((before.seconds + after.seconds) / 2, uncertainty)
