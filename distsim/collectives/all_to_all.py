"""All-to-all: every rank has a piece for every other; in round k rank i sends to rank i + k."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer


def all_to_all(workers: int) -> Schedule:
    """N - 1 rounds. Piece i N + j is rank i's for rank j; each rank's data is 1/N of the whole.

    >>> all_to_all(4).check()
    """
    rounds = tuple(
        tuple(
            Transfer(rank, (rank + k) % workers, rank * workers + (rank + k) % workers, reduce=False)
            for rank in range(workers)
        )
        for k in range(1, workers)
    )
    pieces = [(i, j, i * workers + j) for i in range(workers) for j in range(workers)]
    return Schedule(
        "all_to_all", workers, workers * workers, rounds,
        start=frozenset((i, piece) for i, _, piece in pieces), end=frozenset((j, piece) for _, j, piece in pieces),
    )  # fmt: skip
