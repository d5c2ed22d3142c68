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
    size, stride = (groups.size, groups.stride) if groups else (workers, 1)
    rounds = tuple(RingRound(workers, -1 - number, reduce=True, size=size, stride=stride) for number in range(size - 1))
    own = frozenset((rank, rank // stride % size) for rank in range(workers))
    return Schedule("reduce_scatter", workers, size, rounds, end=own, groups=groups)
