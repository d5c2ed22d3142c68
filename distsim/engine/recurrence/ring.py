"""The ring: rounds in which ranks only wait for their neighbours."""

from __future__ import annotations

import numpy as np

from distsim.engine.recurrence.drawn import Floats
from distsim.engine.recurrence.rounds import MaxPlus, Turns, Ways, finished, matrix_of

HALO = 16  # rounds between two closings of the circle
MATRIX_PAYS = 1000  # as measured: a ring's matrix takes as long as ranks^2 / 1000 calls, round by round


def ring_turns(starts: Floats, seconds: Floats, rounds: int, *, eager: bool) -> Turns:
    """By round, when rank i's transfer to i + 1 starts; at last, when each rank has finished. To be read at once.

    starts: when each rank joins, shape (ranks, …), as all that is told. seconds: from rank i to i + 1, latency
    included, shape (ranks,). The circle is cut open, with copies of its ranks at both ends, of which each round
    spoils one more.
    """
    ranks, halo = len(starts), min(HALO, rounds)
    unrolled = np.arange(-halo, ranks + halo + 1) % ranks
    free = starts[unrolled]
    begun, ended = np.empty_like(free[:-1]), np.empty_like(free[:-1])
    lasting = seconds[unrolled[:-1]].reshape(-1, *[1] * (starts.ndim - 1))
    own, of_next, received, sent, both = free[:-1], free[1:], ended[:-1], ended[1:], free[1:-1]
    true = slice(halo, halo + ranks)
    for number in range(rounds):
        if number and number % halo == 0:
            free[:] = free[true][unrolled]
        start = own if eager else np.maximum(own, of_next, out=begun)
        yield start[true]
        np.add(start, lasting, out=ended)
        np.maximum(received, sent, out=both)
    yield free[true]


def ring_ends(starts: Floats, transfer_seconds: Floats, rounds: int, *, eager: bool) -> Floats:
    """When each rank has finished its part of a ring of so many rounds; both of shape (…, ranks).

    starts: when each rank joins. transfer_seconds: from rank i to i + 1, latency included, shape (ranks,).

    >>> ring_ends(np.array([0.0, 0.0, 5.0]), np.array([1.0, 1.0, 1.0]), rounds=4, eager=False).tolist()
    [9.0, 9.0, 9.0]
    """
    return finished(ring_turns(starts.T, transfer_seconds, rounds, eager=eager)).T


def ring_matrix(transfer_seconds: Floats, rounds: int, *, eager: bool) -> Floats:
    """The max-plus matrix M of a whole ring: rank i has finished at max over j of M[j, i] + starts[j]."""
    return matrix_of(lambda starts: ring_turns(starts, transfer_seconds, rounds, eager=eager), len(transfer_seconds))


class Ring(MaxPlus):
    """The ring all-reduce: `collectives.ring`, without its rounds being spelled out.

    ways: from each rank to the next. calls: how many there will be.
    """

    def __init__(self, ways: Ways, num_bytes: float, *, eager: bool, calls: int) -> None:
        self.workers = len(ways.speeds)
        self.eager = eager
        self.by_matrix = calls * MATRIX_PAYS > self.workers**2
        self.rounds = 2 * (self.workers - 1)
        ranks = np.arange(self.workers, dtype=np.int32)
        self.source, self.target = np.tile(ranks, self.rounds), np.tile((ranks + 1) % self.workers, self.rounds)
        self.chunk = (ranks - np.arange(self.rounds, dtype=np.int32)[:, None]).ravel() % self.workers
        self.bytes = np.full(len(self.source), num_bytes / self.workers)
        self.by_rank = ways.seconds(num_bytes / self.workers)
        self.seconds = np.tile(self.by_rank, self.rounds)
        # On equal links, N - 1 rounds are enough for all to feel the last to join, and 2 (N - 1) follow.
        equal = (self.by_rank == self.by_rank[0]).all()
        self.after = finished(self.turns(np.zeros(self.workers))) if equal else None

    def turns(self, starts: Floats) -> Turns:
        return ring_turns(starts, self.by_rank, self.rounds, eager=self.eager)
