"""Servers on workers' hosts that wait for every worker, where the workers form a few groups of equal workers.

A server's answers share links with pushes to the other servers, so no formula gives the times of a step. But workers
with the same NIC, the same compute time and the same role do the same work at the same moment. All transfers from one
group to another run at one rate. So it is enough to simulate one transfer for each pair of groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count

import numpy as np

from distsim.arrays import Floats
from distsim.engine.recurrence.rows import step_seconds
from distsim.engine.steps import Steps, steps_trace
from distsim.network import OVER
from distsim.scenario import Scenario
from distsim.trace import Trace

MOST_GROUPS = 6  # 72 streams if all groups have servers


@dataclass(frozen=True)
class Group:
    """Equal workers. seconds: of each step. up, down: bytes/s of each NIC. serves: each host also has a server."""

    number: int
    members: list[int]
    seconds: list[float]
    up: float
    down: float
    serves: bool

    def others(self, group: Group) -> int:
        """The number of workers of `group`, without the worker of this group that asks."""
        return len(group.members) - (group is self)


def groups_of_workers(scenario: Scenario) -> list[list[int]] | None:
    """The workers of each group. None where compute times are drawn, because then no two workers are equal."""
    compute, cluster = scenario.compute, scenario.cluster
    if compute.distribution != "constant" or compute.pauses is not None:
        return None
    found: dict[tuple[bool, float, float, float], list[int]] = {}
    for worker in range(cluster.workers):
        serves = worker < len(scenario.servers)
        key = (serves, cluster.up(worker), cluster.down(worker), compute.slow_factor(worker))
        found.setdefault(key, []).append(worker)
    return list(found.values())


class Stream:
    """Equal, simultaneous transfers from each worker of one group to each of another. left: bytes of each transfer."""

    def __init__(self, source: Group, target: Group, arrives: Callable[[float], None]) -> None:
        self.arrives = arrives
        self.links = (  # (link, number of the stream's transfers that cross it)
            (("up", source.number), source.others(target)),
            (("down", target.number), target.others(source)),
        )
        self.left = 0.0
        self.rate = 0.0


class Colocated:
    """The times of all events of a run, in seconds; an event that does not happen is NaN.

    group_of: by worker. start, ready: the start and end of a step's compute; answered: when servers answer; shape
    (steps, groups). arrived, pulled: when gradients, and parameters, arrive; shape (steps, groups of the servers'
    hosts, groups of workers).
    """

    def __init__(self, scenario: Scenario, drawn: Floats, apply_seconds: float) -> None:
        cluster, groups = scenario.cluster, groups_of_workers(scenario)
        assert groups is not None, "otherwise there is no recurrence"
        self.groups = [
            Group(
                number, members, drawn[:, members[0]].tolist(),
                cluster.up(members[0]), cluster.down(members[0]), members[0] < len(scenario.servers),
            )
            for number, members in enumerate(groups)
        ]  # fmt: skip
        self.group_of = np.empty(cluster.workers, np.intp)
        for group in self.groups:
            self.group_of[group.members] = group.number
        self.servers = [group for group in self.groups if group.serves]
        self.latency, self.apply_seconds = cluster.latency_seconds, apply_seconds
        self.bytes = scenario.gradient_bytes / len(scenario.servers)
        self.capacities = {("up", group.number): group.up for group in self.groups}
        self.capacities |= {("down", group.number): group.down for group in self.groups}
        self.steps, number = len(drawn), len(self.groups)
        self.start, self.ready, self.answered = np.full((3, self.steps, number), math.nan)
        self.arrived, self.pulled = np.full((2, self.steps, number, number), math.nan)
        self.agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self.order = count()
        self.streams: list[Stream] = []  # under way
        self.gradients = [0] * number  # by group: streams that a server has received in its step
        self.parameters = [0] * number  # by group: streams that a worker still waits for in its step

    # Events: each method runs at its moment.

    def compute(self, group: Group, step: int, now: float) -> None:
        self.start[step, group.number] = now
        self.parameters[group.number] = sum(1 for server in self.servers if group.others(server)) + group.serves
        self._at(now + group.seconds[step], partial(self.push, group, step))

    def push(self, group: Group, step: int, now: float) -> None:
        self.ready[step, group.number] = now
        for server in self.servers:
            if group.others(server):
                self._send(group, server, partial(self.arrive, group, server, step), now)
        if group.serves:
            self.receive(group, step, now)

    def arrive(self, group: Group, server: Group, step: int, now: float) -> None:
        self.arrived[step, server.number, group.number] = now
        self.receive(server, step, now)

    def receive(self, server: Group, step: int, now: float) -> None:
        expected = sum(1 for group in self.groups if server.others(group)) + 1
        self.gradients[server.number] += 1
        if self.gradients[server.number] == expected:
            self.gradients[server.number] = 0
            self._at(now + self.apply_seconds, partial(self.answer, server, step))

    def answer(self, server: Group, step: int, now: float) -> None:
        self.answered[step, server.number] = now
        for group in self.groups:
            if server.others(group):
                self._send(server, group, partial(self.pull, group, server, step), now)
        self.go_on(server, step, now)

    def pull(self, group: Group, server: Group, step: int, now: float) -> None:
        self.pulled[step, server.number, group.number] = now
        self.go_on(group, step, now)

    def go_on(self, group: Group, step: int, now: float) -> None:
        self.parameters[group.number] -= 1
        if not self.parameters[group.number] and step + 1 < self.steps:
            self.compute(group, step + 1, now)

    # The clock and the links.

    def _send(self, source: Group, target: Group, arrives: Callable[[float], None], now: float) -> None:
        self._at(now + self.latency, partial(self._join, Stream(source, target, arrives)))

    def _join(self, stream: Stream, _: float) -> None:
        stream.left = self.bytes
        self.streams.append(stream)

    def _at(self, seconds: float, happens: Callable[[float], None]) -> None:
        heappush(self.agenda, (seconds, next(self.order), happens))

    def play(self) -> None:
        """Goes from event to event until no event is left."""
        for group in self.groups:
            self.compute(group, 0, 0.0)
        now = 0.0
        while self.agenda or self.streams:
            before = now
            ends = [before + stream.left / stream.rate for stream in self.streams]
            now = min([*ends, *(moment for moment, *_ in self.agenda[:1])])
            soon = now + OVER * now
            under_way = self.streams
            self.streams = []
            for stream, end in zip(under_way, ends, strict=True):
                if end <= soon:
                    stream.arrives(now)
                else:
                    stream.left -= stream.rate * (now - before)
                    self.streams.append(stream)
            while self.agenda and self.agenda[0][0] <= soon:
                heappop(self.agenda)[2](now)
            self._divide()

    def _divide(self) -> None:
        """Max-min fair rates by progressive filling, as in `network.fairness`, with streams in place of flows."""
        left = dict(self.capacities)
        open_streams = list(self.streams)
        while open_streams:
            load: dict[tuple[str, int], int] = {}
            for stream in open_streams:
                for link, carried in stream.links:
                    load[link] = load.get(link, 0) + carried
            share, narrowest = min((left[link] / carried, link) for link, carried in load.items())
            for stream in open_streams:
                if any(link == narrowest for link, _ in stream.links):
                    stream.rate = share
                    for link, carried in stream.links:
                        left[link] = max(left[link] - share * carried, 0.0)
            open_streams = [stream for stream in open_streams if all(link != narrowest for link, _ in stream.links)]


def cannot(scenario: Scenario) -> str | None:
    """The part of `scenario`, whose servers wait for all workers, that has no recurrence here, or None."""
    if scenario.cluster.nodes is not None:
        return "cluster.nodes"
    if scenario.receive == "fifo":
        return 'communication.colocated = true and receive = "fifo"'
    groups = groups_of_workers(scenario)
    if groups is None:
        return "communication.colocated = true and times that are drawn"
    if len(groups) > MOST_GROUPS:
        return f"communication.colocated = true and workers of {len(groups)} kinds"
    return None


def run(scenario: Scenario, apply_seconds: float) -> Trace:
    """Simulates `scenario`. apply_seconds: each server's own work for each update."""
    times = Colocated(scenario, step_seconds(scenario), apply_seconds)
    times.play()
    groups = times.group_of
    step = np.repeat(np.arange(times.steps), len(groups))
    worker = np.tile(np.arange(len(groups), dtype=np.int32), times.steps)
    start, ready = times.start[:, groups].ravel(), times.ready[:, groups].ravel()

    def by_worker(group: int, away: Floats, at_home: Floats) -> Floats:
        """Times of one server of `group` with each worker, (steps × workers,); at_home: with its own host's worker."""
        found = away[:, group, groups]
        found[:, own] = at_home[:, group]
        return found.ravel()

    of_servers = []
    for own in range(len(scenario.servers)):
        group = int(groups[own])
        answered = times.answered[:, group]
        of_servers.append(
            Steps(
                worker=worker, step=step, read_version=step, start=start, ready=ready, began=ready,
                arrived=by_worker(group, times.arrived, times.ready), outcome=(step + 1).astype(np.float64),
                answered=np.repeat(answered, len(groups)), pulled=by_worker(group, times.pulled, times.answered),
                cut=np.full(len(step), math.nan), updates=answered,
            )
        )  # fmt: skip
    return steps_trace(scenario, "recurrence", of_servers, apply_seconds)
