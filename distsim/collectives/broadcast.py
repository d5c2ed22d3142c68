"""Broadcast by a binomial tree: the root's data reach all ranks, and each round doubles the ranks that have them."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer


def broadcast(workers: int, root: int = 0) -> Schedule:
    """ceil(log2 N) rounds of the whole data.

    >>> broadcast(6, root=2).check()
    >>> len(broadcast(8).rounds)
    3
    """
    rounds = []
    reached = 1
    while reached < workers:
        rounds.append(
            tuple(
                Transfer((root + place) % workers, (root + place + reached) % workers, 0, reduce=False)
                for place in range(min(reached, workers - reached))
            )
        )
        reached *= 2
    return Schedule("broadcast", workers, 1, tuple(rounds), start=frozenset({(root, 0)}))


def send(source: int = 0, target: int = 1) -> Schedule:
    """Send and receive: the collective of two, one transfer.

    >>> send().check()
    """
    transfer = Transfer(source, target, 0, reduce=False)
    return Schedule(
        "send", max(source, target) + 1, 1, ((transfer,),), start=frozenset({(source, 0)}), end=frozenset({(target, 0)})
    )
