"""Scatter: the root sends each rank its own piece."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer


def scatter(workers: int, root: int = 0) -> Schedule:
    """One round: N - 1 messages share the root's up-link.

    >>> scatter(4, root=1).check()
    """
    sent = tuple(Transfer(root, rank, rank, reduce=False) for rank in range(workers) if rank != root)
    start = frozenset((root, chunk) for chunk in range(workers))
    end = frozenset((rank, rank) for rank in range(workers))
    return Schedule("scatter", workers, workers, (sent,) if sent else (), start=start, end=end)
