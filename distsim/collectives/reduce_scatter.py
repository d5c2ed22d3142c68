"""Reduce-scatter: rank i ends with piece i of the sum; partial sums travel around a ring."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import RingRound


def reduce_scatter(workers: int) -> Schedule:
    """N - 1 rounds; piece i starts at rank i + 1, collects every rank's part, and ends at rank i.

    >>> reduce_scatter(5).check()
    """
    rounds = tuple(RingRound(workers, -1 - number, reduce=True) for number in range(workers - 1))
    return Schedule("reduce_scatter", workers, workers, rounds, end=frozenset((rank, rank) for rank in range(workers)))
