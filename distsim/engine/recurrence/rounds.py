"""Collectives in rounds, in which ranks only wait for each other.

With e[i] the time at which rank i has finished its earlier rounds, its transfer to j takes d from max(e[i], e[j]) on
(eager: from e[i] on). That is linear in the max-plus algebra (Baccelli et al. 1992, Synchronization and Linearity):
a matrix serves every call. It holds where no link ever carries two transfers at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from distsim.cluster import Cluster, Link
from distsim.collectives import Schedule
from distsim.engine.recurrence.all_reduce import AllReduce, Ints
from distsim.engine.recurrence.drawn import Floats

TOGETHER = 64  # calls whose times are worked out at once; more of them leave the processor's cache


def may_share(schedule: Schedule, cluster: Cluster, *, eager: bool) -> Link | None:
    """A link that two transfers of `schedule` may use at once; None where there is none.

    In each round of it a rank may send to one other and receive from one other. A rank's own transfers come one after
    the other; with eager sends those to it need not wait for it.

    >>> from distsim.collectives import halving_doubling
    >>> cluster = Cluster(workers=4, bandwidth="1 GB/s", latency="1 ms")
    >>> may_share(halving_doubling(4), cluster, eager=False), may_share(halving_doubling(4), cluster, eager=True)
    (None, ('down', 0))
    """
    users: dict[Link, tuple[set[int], set[int]]] = {}
    for source, target in sorted({(transfer.source, transfer.target) for _, transfer in schedule.transfers()}):
        for link in cluster.route(source, target)[0]:
            sources, targets = users.setdefault(link, (set(), set()))
            sources.add(source)
            targets.add(target)
    for link, (sources, targets) in users.items():
        if len(sources) > 1 and (eager or len(targets) > 1):
            return link
    return None


Turns = Iterator[Floats]  # by round, when its transfers start; at last, when each rank has finished


def finished(turns: Turns) -> Floats:
    """When each rank has finished all rounds."""
    for last in turns:
        times = last
    return times.copy()


def matrix_of(turns: Callable[[Floats], Turns], ranks: int) -> Floats:
    """The max-plus matrix M of such rounds: rank i has finished at max over j of M[i, j] + starts[j]."""
    alone = np.full((ranks, ranks), -math.inf)
    np.fill_diagonal(alone, 0.0)
    return finished(turns(alone))


class Rounds(AllReduce):
    """An all-reduce among workers alone; in a round each of them sends at most once, and receives at most once."""

    by_matrix = True  # or round by round, for each call

    def __init__(self, schedule: Schedule, cluster: Cluster, num_bytes: float, *, eager: bool) -> None:
        transfers = [transfer for _, transfer in schedule.transfers()]
        self.workers = schedule.workers
        self.eager = eager
        self.source = np.array([transfer.source for transfer in transfers], dtype=np.int32)
        self.target = np.array([transfer.target for transfer in transfers], dtype=np.int32)
        self.chunk = np.array([transfer.chunk for transfer in transfers], dtype=np.int32)
        self.bytes = np.array([transfer.chunks for transfer in transfers]) * (num_bytes / schedule.chunks)
        self.seconds = transfer_seconds(cluster, self.source, self.target, self.bytes)
        self.rounds = np.cumsum([0, *(len(members) for members in schedule.rounds)]).tolist()

    def turns(self, starts: Floats) -> Turns:
        """When the transfers of each round start if the ranks join at `starts`, (workers, …). To be read at once."""
        free = starts.copy()
        for first, last in pairwise(self.rounds):
            source, target = self.source[first:last], self.target[first:last]
            begun = free[source] if self.eager else np.maximum(free[source], free[target])
            yield begun
            ended = begun + self.seconds[first:last].reshape(-1, *[1] * (free.ndim - 1))
            free[source] = np.maximum(free[source], ended)
            free[target] = np.maximum(free[target], ended)
        yield free

    @cached_property
    def matrix(self) -> Floats:
        """Of the whole call, see `matrix_of`."""
        return matrix_of(self.turns, self.workers)

    @cached_property
    def joint(self) -> bool:
        """Whether each rank has finished a fixed time after the last has joined."""
        return bool((self.matrix == self.matrix[:, :1]).all())

    @cached_property
    def _after(self) -> Floats:
        return finished(self.turns(np.zeros(self.workers)))

    def ends(self, arrivals: Floats) -> Floats:
        if self.joint:
            return np.asarray(arrivals.max(axis=-1, keepdims=True) + self._after)
        if self.by_matrix:
            return np.asarray((self.matrix + arrivals[..., None, :]).max(axis=-1))
        return np.swapaxes(finished(self.turns(arrivals.T)), 0, -1)

    def transfers(self, arrivals: Floats, times: Floats) -> None:
        for first in range(0, len(arrivals), TOGETHER):
            starts, ends = times[:, first : first + TOGETHER]
            at = 0
            for begun in self.turns(np.ascontiguousarray(arrivals[first : first + TOGETHER].T)):
                if at < starts.shape[1]:
                    starts[:, at : at + len(begun)] = begun.T
                at += len(begun)
            np.add(starts, self.seconds, out=ends)


def transfer_seconds(cluster: Cluster, source: Ints, target: Ints, num_bytes: Floats | float) -> Floats:
    """Seconds that each transfer takes when its links are its own, latency included; shape (transfers,)."""
    capacities = cluster.capacities(cluster.workers)
    latencies, speeds = np.empty(len(source)), np.empty(len(source))
    for row, (start, end) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        links, latencies[row] = cluster.route(start, end)
        speeds[row] = min(capacities[link] for link in links)
    return latencies + num_bytes / speeds
