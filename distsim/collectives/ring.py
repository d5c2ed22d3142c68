"""Ring all-reduce: every rank passes chunks to the next one, first adding them up, then handing the sums on.

Source: Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations.
"""

from __future__ import annotations

from functools import partial

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import RingRound
from distsim.groups import Groups


def ring(workers: int, groups: Groups | None = None) -> Schedule:
    """2 (N - 1) rounds; in each, every rank sends one of N chunks to the next rank. groups: N is their size.

    >>> schedule = ring(4)
    >>> schedule.check()
    >>> len(schedule.rounds), schedule.chunks
    (6, 4)
    """
    own = groups or Groups(workers)
    around = partial(RingRound, workers, size=own.size, stride=own.stride)
    # Reduce-scatter: in round r rank i sends chunk i - r, to which it has added its own part.
    reduce_scatter = [around(-number, reduce=True) for number in range(own.size - 1)]
    # All-gather: rank i now holds the sum of chunk i + 1 and passes it on.
    all_gather = [around(1 - number, reduce=False) for number in range(own.size - 1)]
    return Schedule("ring", workers, own.size, tuple(reduce_scatter + all_gather), gate="process", groups=groups)
