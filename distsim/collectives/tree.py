"""All-reduce on a binary heap tree, unpipelined: sums climb to rank 0, the result comes down again."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer


def tree(workers: int) -> Schedule:
    """Rank i's children are 2 i + 1 and 2 i + 2. A rank sends its whole sum up when both children's sums have arrived.

    >>> tree(7).check()
    >>> len(tree(7).rounds)
    4
    """
    depths = max(workers, 1).bit_length() - 1
    levels = [
        [rank for rank in range(1, workers) if (rank + 1).bit_length() - 1 == depth] for depth in range(1, depths + 1)
    ]
    up = [tuple(Transfer(rank, (rank - 1) // 2, 0, reduce=True) for rank in level) for level in reversed(levels)]
    down = [tuple(Transfer((rank - 1) // 2, rank, 0, reduce=False) for rank in level) for level in levels]
    return Schedule("tree", workers, 1, tuple(up + down), gate="data")
