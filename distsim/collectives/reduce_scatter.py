"""Reduce-scatter: rank i ends with piece i of the sum; partial sums travel around a ring."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import RingRound
from distsim.groups import Groups


def reduce_scatter(workers: int, groups: Groups | None = None) -> Schedule:
    """N - 1 rounds; piece i starts at rank i + 1, collects every rank's part, and ends at rank i. groups: N is their
    size, and ranks count within a group.

    >>> reduce_scatter(5).check()
    """
    around = groups or Groups(workers)
    rounds = tuple(
        RingRound(workers, -1 - number, reduce=True, size=around.size, stride=around.stride)
        for number in range(around.size - 1)
    )
    own = frozenset((rank, around.place(rank)) for rank in range(workers))
    return Schedule("reduce_scatter", workers, around.size, rounds, end=own, groups=groups)
