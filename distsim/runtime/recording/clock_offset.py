"""How far the clocks of several machines are apart, estimated from round trips between them and the first rank.

    own clock      asked ----------------------> answered
                         \\                     /
    rank 0's clock        ------> told --------

If both ways took equally long, `told` was the middle of `asked` and `answered`. Whatever they took, the estimate is
off by at most half the round trip (Cristian 1989). So only the quickest trips count, and their median; the bound of
the slowest of those is the uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

QUICKEST = 8  # of them count


@dataclass(frozen=True)
class Offset:
    """What to add to this machine's clock to get that of rank 0, and by how much that may be wrong, in seconds."""

    seconds: float = 0.0
    uncertainty_seconds: float = 0.0

    def table(self) -> dict[str, Any]:
        """In values that JSON can hold."""
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
    """For the time between two estimates: clocks also drift.

    >>> between(Offset(1.0, 0.25), Offset(2.0, 0.5))
    Offset(seconds=1.5, uncertainty_seconds=1.0)
    """
    drift = abs(after.seconds - before.seconds) / 2
    uncertainty = max(before.uncertainty_seconds, after.uncertainty_seconds) + drift
    return Offset((before.seconds + after.seconds) / 2, uncertainty)
