"""The start of chosen rounds of a ring whose links are all alike, without the rounds between.

Let a transfer take d. A rank is free after r rounds at r d plus the latest join of the ranks that could delay it: the r
ranks before it, and with rendezvous also the r ranks after it. The latest join of any number of neighbours is the
maximum of two overlapping windows whose widths are a power of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from distsim.arrays import Floats


def ring_starts(joins: Floats, seconds: float, rounds: Iterable[int], *, eager: bool) -> Iterator[Floats]:
    """For each of these rounds, counted from 0, the start of rank i's transfer to i + 1; shape of `joins`.

    joins: when each rank joins, shape (ranks, …). seconds: of a transfer, latency included.

    >>> joins = np.array([0.0, 0.0, 5.0, 0.0])
    >>> [starts.tolist() for starts in ring_starts(joins, 1.0, [0, 1], eager=False)]
    [[0.0, 5.0, 5.0, 0.0], [6.0, 6.0, 6.0, 6.0]]
    """
    latest = _Windows(joins)
    for number in rounds:
        yield number * seconds + (latest(number, 0) if eager else latest(number, number + 1))


def ring_ends_of_alike(joins: Floats, seconds: float, rounds: int, *, eager: bool) -> Floats:
    """The times when each rank has finished `rounds` rounds, shape of `joins`.

    >>> ring_ends_of_alike(np.array([0.0, 0.0, 5.0, 0.0]), 1.0, 1, eager=False).tolist()
    [1.0, 6.0, 6.0, 6.0]
    """
    return np.asarray(rounds * seconds + _Windows(joins)(rounds, 0 if eager else rounds))


class _Windows:
    """The maxima of neighbours on a circle, along the first axis."""

    def __init__(self, values: Floats) -> None:
        self.of_width = [values]  # entry k: the maximum of the 2^k values from a place on

    def __call__(self, before: int, after: int) -> Floats:
        """For each place, the maximum of the values from `before` places before it to `after` places after it."""
        width = before + after + 1
        if width >= len(self.of_width[0]):
            return np.broadcast_to(self.of_width[0].max(axis=0), self.of_width[0].shape)
        power = width.bit_length() - 1
        while len(self.of_width) <= power:
            narrow = self.of_width[-1]
            self.of_width.append(np.maximum(narrow, np.roll(narrow, -(2 ** (len(self.of_width) - 1)), axis=0)))
        first = np.roll(self.of_width[power], before, axis=0)
        return np.maximum(first, np.roll(self.of_width[power], 2**power - after - 1, axis=0))
