"""Recursive halving, then doubling (Rabenseifner): pairs swap ever smaller halves, then ever larger sums.

Source: Thakur, Rabenseifner and Gropp 2005, Optimization of collective communication operations in MPICH. Where
the number of workers is no power of two, each rank beyond it first hands its gradient to a neighbour, and gets the
sum back in the end.
"""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer


def halving_doubling(workers: int) -> Schedule:
    """2 log2(N) rounds of halving sizes for a power of two; two more, of whole gradients, otherwise.

    >>> for workers in (4, 6):
    ...     halving_doubling(workers).check()
    >>> len(halving_doubling(8).rounds), len(halving_doubling(6).rounds)
    (6, 6)
    """
    core = 1 << (workers.bit_length() - 1)
    extra = workers - core
    # Of the first 2 x extra ranks the even ones hand over to their odd neighbour and sit out.
    members = [*range(1, 2 * extra, 2), *range(2 * extra, workers)]
    fold = tuple(Transfer(rank, rank + 1, 0, reduce=True, chunks=core) for rank in range(0, 2 * extra, 2))
    unfold = tuple(Transfer(rank + 1, rank, 0, reduce=False, chunks=core) for rank in range(0, 2 * extra, 2))

    halving, doubling = [], []
    size = core // 2
    while size:
        # Place p keeps the half of its block in which its own bit lies, and sends the other half to its partner.
        halves = [(place & ~(2 * size - 1)) + ((place ^ size) & size) for place in range(core)]
        halving.append(
            tuple(
                Transfer(members[place], members[place ^ size], halves[place], reduce=True, chunks=size)
                for place in range(core)
            )
        )
        doubling.append(
            tuple(
                Transfer(members[place], members[place ^ size], halves[place ^ size], reduce=False, chunks=size)
                for place in range(core)
            )
        )
        size //= 2
    rounds = [*([fold] if fold else []), *halving, *reversed(doubling), *([unfold] if unfold else [])]
    return Schedule("halving_doubling", workers, core, tuple(rounds), gate="process")
