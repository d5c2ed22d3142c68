"""All-gather: every rank ends with the pieces of all ranks, which travel around a ring."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import RingRound
from distsim.groups import Groups


def all_gather(workers: int, groups: Groups | None = None) -> Schedule:
    """N - 1 rounds; rank i first sends its own piece, then passes on what it received. groups: N is their size.

    >>> all_gather(5).check()
    """
    around = groups or Groups(workers)
    rounds = tuple(
        RingRound(workers, -number, reduce=False, size=around.size, stride=around.stride)
        for number in range(around.size - 1)
    )
    own = frozenset((rank, around.place(rank)) for rank in range(workers))
    return Schedule("all_gather", workers, around.size, rounds, start=own, groups=groups)
