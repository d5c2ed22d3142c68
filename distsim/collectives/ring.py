"""Ring all-reduce: every rank passes chunks to the next one, first adding them up, then handing the sums on.

Source: Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations.
"""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import RingRound


def ring(workers: int) -> Schedule:
    """2 (N - 1) rounds; in each, every rank sends one of N chunks to the next rank.

    >>> schedule = ring(4)
    >>> schedule.check()
    >>> len(schedule.rounds), schedule.chunks
    (6, 4)
    """
    # Reduce-scatter: in round r rank i sends chunk i - r, to which it has added its own part.
    reduce_scatter = [RingRound(workers, -number, reduce=True) for number in range(workers - 1)]
    # All-gather: rank i now holds the sum of chunk i + 1 and passes it on.
    all_gather = [RingRound(workers, 1 - number, reduce=False) for number in range(workers - 1)]
    return Schedule("ring", workers, workers, tuple(reduce_scatter + all_gather), gate="process")
