"""Ring all-reduce: every rank passes chunks to the next one, first adding them up, then handing the sums on.

Source: Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations.
"""

from __future__ import annotations

from distsim.collectives.schedule import Schedule, Transfer


def ring(workers: int) -> Schedule:
    """2 (N - 1) rounds; in each, every rank sends one of N chunks to the next rank.

    >>> schedule = ring(4)
    >>> schedule.check()
    >>> len(schedule.rounds), schedule.chunks
    (6, 4)
    """
    # Reduce-scatter: in round r rank i sends chunk i - r, to which it has added its own part.
    reduce_scatter = [
        tuple(Transfer(rank, (rank + 1) % workers, (rank - number) % workers, reduce=True) for rank in range(workers))
        for number in range(workers - 1)
    ]
    # All-gather: rank i now holds the sum of chunk i + 1 and passes it on.
    all_gather = [
        tuple(
            Transfer(rank, (rank + 1) % workers, (rank + 1 - number) % workers, reduce=False) for rank in range(workers)
        )
        for number in range(workers - 1)
    ]
    return Schedule("ring", workers, workers, tuple(reduce_scatter + all_gather), gate="process")
