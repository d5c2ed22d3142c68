"""All-gather: every rank ends with the pieces of all ranks, which travel around a ring."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import RingRound


def all_gather(workers: int) -> Schedule:
    """N - 1 rounds; rank i first sends its own piece, then passes on what it received.

    >>> all_gather(5).check()
    """
    rounds = tuple(RingRound(workers, -number, reduce=False) for number in range(workers - 1))
    return Schedule("all_gather", workers, workers, rounds, start=frozenset((rank, rank) for rank in range(workers)))
