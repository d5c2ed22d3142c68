"""When each transfer of one call of a collective starts and ends: round by round, in the max-plus algebra.

Here ranks wait only for other ranks, never for a link. Let e[i] be the time when rank i has finished its earlier
rounds. Its transfer to j starts at max(e[i], e[j]) (eager: at e[i]) and takes d. This is linear in the max-plus algebra
(Baccelli et al. 1992, Synchronization and Linearity), so one matrix serves every call. The model holds where no link
ever carries two transfers at once: `is_sequential` of `Schedule` and `may_share` check this. `Rounds` follows any such
schedule. `collective_times.rings` follows a schedule whose ranks stand in rings, and needs no list of transfers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from distsim.arrays import Flags, Floats, Indices
from distsim.cluster import Cluster, LinkName
from distsim.collective_times.all_reduce import AllReduce
from distsim.collectives import Schedule

HALO = 16  # rounds between two closings of the circle
MATRIX_PAYS = 1000  # measured with rings: a matrix takes as long as ranks^2 / 1000 calls round by round
TOGETHER = 64  # calls that are computed at once; more calls do not fit into the processor's cache

RoundTimes = Iterator[Floats]  # by round, the starts of its transfers; at last, the end of each rank


def finished(rounds: RoundTimes) -> Floats:
    """The times when each rank has finished all rounds."""
    for last in rounds:
        times = last
    return times.copy()


def matrix_of(round_times: Callable[[Floats], RoundTimes], ranks: int) -> Floats:
    """The max-plus matrix M of these rounds: rank i finishes at max over j of M[j, i] + starts[j]."""
    alone = np.full((ranks, ranks), -math.inf)
    np.fill_diagonal(alone, 0.0)
    return np.ascontiguousarray(finished(round_times(alone)).T)


@dataclass(frozen=True)
class Routes:
    """Routes between hosts over links without other traffic: latency in seconds, and bytes per second; one shape."""

    latencies: Floats
    speeds: Floats

    @classmethod
    def of(cls, cluster: Cluster, source: Indices, target: Indices) -> Routes:
        """The routes from workers `source` to workers `target`."""
        capacities = cluster.link_capacities
        first, last, latencies = cluster.route_numbers(source, target)
        return cls(latencies, np.minimum(capacities[first], capacities[last]))

    def seconds(self, num_bytes: Floats | float) -> Floats:
        """The seconds that `num_bytes` take."""
        return self.latencies + num_bytes / self.speeds


class MaxPlus(AllReduce):
    """An all-reduce among workers only. In a round each worker sends at most once and receives at most once.

    by_matrix: False computes round by round.
    """

    workers: int
    by_matrix = True

    @property
    @abstractmethod
    def seconds(self) -> Floats:
        """Of one call's transfers, round by round, latency included."""

    @abstractmethod
    def round_times(self, starts: Floats) -> RoundTimes:
        """The starts of each round's transfers for joins at `starts`, (workers, …). Read each before the next."""

    @cached_property
    def matrix(self) -> Floats:
        """The matrix of the whole call, see `matrix_of`."""
        return matrix_of(self.round_times, self.workers)

    def ends(self, arrivals: Floats) -> Floats:
        if self.after is not None:
            return np.asarray(arrivals.max(axis=-1, keepdims=True) + self.after)
        if self.by_matrix:
            return np.asarray((self.matrix + arrivals[..., None]).max(axis=-2))
        return finished(self.round_times(arrivals.T)).T

    def transfers(self, arrivals: Floats, starts: Floats, ends: Floats) -> None:
        seconds = self.seconds
        for first in range(0, len(arrivals), TOGETHER):
            calls = slice(first, first + TOGETHER)
            rounds = self.round_times(np.ascontiguousarray(arrivals[calls].T))
            at = 0
            while at < self.rows:
                begun = next(rounds)
                starts[calls, at : at + len(begun)] = begun.T
                at += len(begun)
            np.add(starts[calls], seconds, out=ends[calls])


@dataclass(frozen=True)
class RoutedSchedule:
    """A schedule's transfers with their routes, in order. bounds: the first transfer of each round, and the end."""

    schedule: Schedule
    source: Indices
    target: Indices
    chunk: Indices
    chunks: Indices
    bounds: list[int]
    routes: Routes

    @classmethod
    def of(cls, schedule: Schedule, cluster: Cluster) -> RoutedSchedule:
        """The transfers of `schedule`, whose ranks are all workers, on the links of `cluster`."""
        rows = [
            (transfer.source, transfer.target, transfer.chunk, transfer.chunks) for _, transfer in schedule.transfers()
        ]
        source, target, chunk, chunks = np.array(rows, dtype=np.int32).reshape(-1, 4).T.copy()
        bounds = np.cumsum([0, *(len(members) for members in schedule.rounds)]).tolist()
        return cls(schedule, source, target, chunk, chunks, bounds, Routes.of(cluster, source, target))


class Rounds(MaxPlus):
    """The all-reduce of a schedule that `is_sequential` and whose transfers share no link. calls: those of the run."""

    def __init__(self, routed: RoutedSchedule, num_bytes: float, *, eager: bool, calls: int) -> None:
        self.routed = routed
        self.workers, self.rows = routed.schedule.workers, len(routed.source)
        self.eager = eager
        self.bytes = np.multiply(routed.chunks, num_bytes / routed.schedule.chunks, dtype=np.float64)
        self.by_matrix = calls * MATRIX_PAYS > self.workers**2
        self.after = self.matrix[0] if self.by_matrix and (self.matrix == self.matrix[0]).all() else None

    @cached_property
    def seconds(self) -> Floats:
        return self.routed.routes.seconds(self.bytes)

    def columns(self) -> tuple[Indices, Indices, Indices, Floats]:
        return self.routed.source, self.routed.target, self.routed.chunk, self.bytes

    def round_times(self, starts: Floats) -> RoundTimes:
        free = starts.copy()
        for first, last in pairwise(self.routed.bounds):
            source, target = self.routed.source[first:last], self.routed.target[first:last]
            begun = free[source] if self.eager else np.maximum(free[source], free[target])
            yield begun
            ended = begun + self.seconds[first:last].reshape(-1, *[1] * (free.ndim - 1))
            free[source] = np.maximum(free[source], ended)
            free[target] = np.maximum(free[target], ended)
        yield free


def may_share(schedule: Schedule, cluster: Cluster, *, eager: bool) -> LinkName | None:
    """A link that two transfers of `schedule`, which `is_sequential`, may use at once; None where there is none.

    A rank's own sends come one after the other. So do its receives, except with eager sends, where a transfer to a rank
    does not wait for this rank.

    >>> from distsim.collectives import halving_doubling
    >>> cluster = Cluster(workers=4, bandwidth="1 GB/s", latency="1 ms")
    >>> may_share(halving_doubling(4), cluster, eager=False), may_share(halving_doubling(4), cluster, eager=True)
    (None, ('down', 0))
    """
    source, target = schedule.pairs
    for links in cluster.route_numbers(source, target)[:2]:
        several = _several(links, source) & (eager | _several(links, target))
        if several.any():
            return cluster.link_name(links[several].min())
    return None


def _several(links: Indices, ranks: Indices) -> Flags:
    """For each place whether its link comes with more than one rank."""
    place = np.unique(links, return_inverse=True)[1]
    least, most = np.full(len(links), ranks.max(initial=0)), np.zeros(len(links), ranks.dtype)
    np.minimum.at(least, place, ranks)
    np.maximum.at(most, place, ranks)
    found: Flags = (least < most)[place]
    return found


def ring_round_times(starts: Floats, seconds: Floats, rounds: int, *, eager: bool) -> RoundTimes:
    """By round, the start of rank i's transfer to i + 1; at last, the end of each rank. Read each before the next.

    starts: when each rank joins, shape (ranks, …), like all results. seconds: from rank i to i + 1, latency included,
    of the first axes of that shape. The circle is cut open and gets copies of its ranks at both ends. Each round makes
    one more copy invalid.
    """
    ranks, halo = len(starts), min(HALO, rounds)
    unrolled = np.arange(-halo, ranks + halo + 1) % ranks
    free = starts[unrolled]
    begun, ended = np.empty_like(free[:-1]), np.empty_like(free[:-1])
    lasting = seconds[unrolled[:-1]]
    lasting = lasting.reshape(lasting.shape + (1,) * (starts.ndim - seconds.ndim))
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
    """The times when each rank has finished its part of a ring of `rounds` rounds, shape (…, ranks).

    starts: when each rank joins, (…, ranks). transfer_seconds: from rank i to i + 1, latency included, shape (ranks,).

    >>> ring_ends(np.array([0.0, 0.0, 5.0]), np.array([1.0, 1.0, 1.0]), rounds=4, eager=False).tolist()
    [9.0, 9.0, 9.0]
    """
    return finished(ring_round_times(starts.T, transfer_seconds, rounds, eager=eager)).T
