"""The ring: ranks that only wait for their neighbours, round after round."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from distsim.cluster import Cluster
from distsim.engine.recurrence.drawn import Floats
from distsim.engine.recurrence.rounds import Rounds, finished, matrix_of, transfer_seconds

HALO = 16  # rounds between two closings of the circle
MATRIX_PAYS = 1000  # as measured: a ring's matrix takes as long as ranks^2 / 1000 calls, round by round


def ring_turns(starts: Floats, seconds: Floats, rounds: int, *, eager: bool) -> Iterator[Floats]:
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
    return matrix_of(lambda starts: ring_turns(starts, transfer_seconds, rounds, eager=eager), len(transfer_seconds)).T


class Ring(Rounds):
    """The ring all-reduce: `collectives.ring`, without its rounds being spelled out. calls: how many there will be."""

    def __init__(self, cluster: Cluster, num_bytes: float, *, eager: bool, calls: int) -> None:
        ranks = np.arange(cluster.workers, dtype=np.int32)
        targets = (ranks + 1) % cluster.workers
        chunk_bytes = num_bytes / cluster.workers
        self.workers = cluster.workers
        self.eager = eager
        self.by_matrix = calls * MATRIX_PAYS > self.workers**2
        self.num_rounds = 2 * (self.workers - 1)
        self.by_rank = transfer_seconds(cluster, ranks, targets, chunk_bytes)
        self.source, self.target = np.tile(ranks, self.num_rounds), np.tile(targets, self.num_rounds)
        self.chunk = (ranks - np.arange(self.num_rounds, dtype=np.int32)[:, None]).ravel() % self.workers
        self.bytes = np.full(len(self.source), chunk_bytes)
        self.seconds = np.tile(self.by_rank, self.num_rounds)

    @cached_property
    def joint(self) -> bool:
        """On equal links: in N - 1 rounds the last to join is felt by all, and 2 (N - 1) follow its joining."""
        return bool((self.by_rank == self.by_rank[0]).all())

    def turns(self, starts: Floats) -> Iterator[Floats]:
        return ring_turns(starts, self.by_rank, self.num_rounds, eager=self.eager)
