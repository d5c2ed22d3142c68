"""All-reduces whose ranks stand in rings, such as the ring and rings of rings: max-plus without a list of transfers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from distsim.arrays import Floats, Indices
from distsim.cluster import Cluster
from distsim.collective_times.all_reduce import Bundle, Part
from distsim.collective_times.max_plus_rounds import MATRIX_PAYS, MaxPlus, RoundTimes, Routes, ring_round_times
from distsim.collective_times.round_sample import ring_ends_of_alike, ring_starts
from distsim.collectives import RingRound, Schedule


@dataclass(frozen=True)
class Phase:
    """Rounds that follow each other in the same rings. size, stride: of `RingRound`.

    seconds: of each rank's transfer to the next in its ring, latency included, shape (workers,).
    """

    rounds: int
    size: int
    stride: int
    seconds: Floats

    def by_ring(self, of_rank: Floats) -> Floats:
        """An array of shape (workers, …) as one of shape (size, blocks, stride, …): the members of a ring first."""
        return np.moveaxis(of_rank.reshape(-1, self.size, self.stride, *of_rank.shape[1:]), 1, 0)

    def by_rank(self, of_ring: Floats) -> Floats:
        """The opposite of `by_ring`."""
        return np.moveaxis(of_ring, 0, 1).reshape(-1, *of_ring.shape[3:])

    @property
    def alike(self) -> bool:
        """Whether every transfer takes the same time."""
        return bool((self.seconds == self.seconds[0]).all())

    @property
    def mixes(self) -> bool:
        """Whether the last member to join has delayed all of its ring when the phase ends, and all links are alike."""
        return self.rounds >= self.size - 1 and self.alike

    def sample(self, free: Floats, chosen: list[int], *, eager: bool) -> Iterator[Floats]:
        """The starts of the `chosen` rounds, and at last the end of each rank, for joins at `free`, (workers, …)."""
        joins, seconds = self.by_ring(free), float(self.seconds[0])
        if self.alike:
            yield from map(self.by_rank, ring_starts(joins, seconds, chosen, eager=eager))
            yield self.by_rank(ring_ends_of_alike(joins, seconds, self.rounds, eager=eager))
            return
        for number, times in enumerate(ring_round_times(joins, self.by_ring(self.seconds), self.rounds, eager=eager)):
            if number in (*chosen, self.rounds):
                yield self.by_rank(times).copy()


class Rings(MaxPlus):
    """The collective of a schedule that is `in_rings`, where rings share no link. calls: those of the run."""

    def __init__(self, schedule: Schedule, cluster: Cluster, num_bytes: float, *, eager: bool, calls: int) -> None:
        self.workers = schedule.workers
        self.rows = self.workers * len(schedule.rounds)
        self.eager = eager
        self.by_matrix = calls * MATRIX_PAYS > self.workers**2
        self.rounds = [found for found in schedule.rounds if isinstance(found, RingRound)]
        self.chunk_bytes = num_bytes / schedule.chunks
        self.phases: list[Phase] = []
        routes: dict[tuple[int, int], Routes] = {}
        for (size, stride), together in groupby(self.rounds, key=lambda found: found.rings):
            members = list(together)
            if (size, stride) not in routes:
                source, target, _ = members[0].columns()
                routes[size, stride] = Routes.of(cluster, source, target)
            seconds = routes[size, stride].seconds(self.chunk_bytes * members[0].share)
            self.phases.append(Phase(len(members), size, stride, seconds))
        self.after = np.full(self.workers, self._alone()) if self._all_mix() else None

    def _all_mix(self) -> bool:
        """Whether the last rank to join delays all others in the same way: rings of rings that mix hold all ranks."""
        together = 1
        for size, stride in sorted({(phase.size, phase.stride) for phase in self.phases}, key=lambda ring: ring[1]):
            if stride != together:
                return False
            together *= size
        return together == self.workers and all(phase.mixes for phase in self.phases)

    def _alone(self) -> float:
        """The seconds from the last join to the end, added round by round as in `round_times`."""
        seconds = 0.0
        for phase in self.phases:
            for _ in range(phase.rounds):
                seconds += float(phase.seconds[0])
        return seconds

    @property
    def seconds(self) -> Floats:
        return np.concatenate([np.tile(phase.seconds, phase.rounds) for phase in self.phases] or [np.empty(0)])

    def columns(self) -> tuple[Indices, Indices, Indices, Floats]:
        found = [members.columns() for members in self.rounds] or [(np.empty(0, np.int32),) * 3]
        source, target, chunk = (np.concatenate(column) for column in zip(*found, strict=True))
        shares = np.repeat([members.share for members in self.rounds], self.workers)
        return source, target, chunk, shares * self.chunk_bytes

    def carried(self) -> tuple[Indices, Indices, Floats]:
        members = {found.rings: found for found in self.rounds}
        shares = dict.fromkeys(members, 0)
        for found in self.rounds:
            shares[found.rings] += found.share
        pairs = [found.columns()[:2] for found in members.values()] or [(np.empty(0, np.int32),) * 2]
        source, target = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return source, target, np.repeat(list(shares.values()), self.workers) * self.chunk_bytes

    def round_times(self, starts: Floats) -> RoundTimes:
        free = starts
        for phase in self.phases:
            times = ring_round_times(phase.by_ring(free), phase.by_ring(phase.seconds), phase.rounds, eager=self.eager)
            for _ in range(phase.rounds):
                yield phase.by_rank(next(times))
            free = phase.by_rank(next(times))
        yield free

    def between(self, arrivals: Floats, start: float, end: float) -> Iterator[Part]:
        seconds = (phase.seconds for phase in self.phases for _ in range(phase.rounds))
        for members, begun, lasting in zip(self.rounds, self.round_times(arrivals), seconds, strict=False):
            if begun.min() >= end:
                return  # no later round begins earlier
            ended = begun + lasting
            found = np.flatnonzero((begun < end) & (ended > start))
            if len(found):
                source, target, chunk = (column[found] for column in members.columns())
                num_bytes = np.full(len(found), members.share * self.chunk_bytes)
                yield source, target, chunk, num_bytes, begun[found], ended[found]

    def bundles(self, arrivals: Floats, most: int) -> Iterator[Bundle]:
        free, first = arrivals.T, 0
        for phase in self.phases:
            members = self.rounds[first]
            first += phase.rounds
            parts = max(1, min(phase.rounds, most // len(self.phases)))
            bounds = np.linspace(0, phase.rounds, parts + 1).round().astype(int).tolist()
            chosen = sorted({*bounds[:-1], *(bound - 1 for bound in bounds[1:])})
            *starts, free = phase.sample(free, chosen, eager=self.eager)
            begun = dict(zip(chosen, starts, strict=True))
            source, target, _ = members.columns()
            for low, high in pairwise(bounds):
                num_bytes = np.full(self.workers, (high - low) * members.share * self.chunk_bytes)
                yield source, target, num_bytes, high - low, begun[low].T, (begun[high - 1].T + phase.seconds)
