"""Gather: the root collects a piece from each rank."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer


def gather(workers: int, root: int = 0) -> Schedule:
    """One round: N - 1 messages share the root's down-link.

    >>> gather(4, root=1).check()
    """
    sent = tuple(Transfer(rank, root, rank, reduce=False) for rank in range(workers) if rank != root)
    start = frozenset((rank, rank) for rank in range(workers))
    end = frozenset((root, chunk) for chunk in range(workers))
    return Schedule("gather", workers, workers, (sent,) if sent else (), start=start, end=end)
