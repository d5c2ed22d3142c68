"""Reduce: the root gets the sum, by the binomial tree of `broadcast` the other way round."""

from __future__ import annotations

from distsim.collectives.broadcast import broadcast
from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer


def reduce(workers: int, root: int = 0) -> Schedule:
    """ceil(log2 N) rounds of the whole data.

    >>> reduce(6, root=2).check()
    """
    rounds = tuple(
        tuple(Transfer(transfer.target, transfer.source, 0, reduce=True) for transfer in transfers)
        for transfers in reversed(broadcast(workers, root).rounds)
    )
    return Schedule("reduce", workers, 1, rounds, end=frozenset({(root, 0)}))
