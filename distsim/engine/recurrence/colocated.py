"""Servers on workers' hosts, which wait for all, where workers are of a few kinds: what is alike does alike.

There a server's answers share links with pushes to the others, so no step begins anew and no formula tells its time.
But workers of one kind do the same at the same moment, and the transfers between two kinds are all equally fast: one
of each is followed, from one event to the next, however many there are.
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
from distsim.network import OVER
from distsim.scenario import Scenario

MOST_KINDS = 6  # of which at most all have servers: 72 streams


@dataclass(frozen=True)
class Kind:
    """Workers that are alike. number: of the kind. seconds: of each step. serves: a server lives with each of them."""

    number: int
    members: list[int]
    seconds: list[float]
    up: float
    down: float
    serves: bool

    def others(self, kind: Kind) -> int:
        """How many of `kind` there are besides oneself."""
        return len(kind.members) - (kind is self)


def kinds(scenario: Scenario) -> list[list[int]] | None:
    """The workers by kind; None where their times are drawn, so that no two are alike."""
    compute, cluster = scenario.compute, scenario.cluster
    if compute.distribution != "constant" or compute.pauses is not None:
        return None
    found: dict[tuple[bool, float, float, float], list[int]] = {}
    for worker in range(cluster.workers):
        serves = worker < len(scenario.servers)
        like = (serves, cluster.up(worker), cluster.down(worker), compute.slow_factor(worker))
        found.setdefault(like, []).append(worker)
    return list(found.values())


class Stream:
    """Equal transfers from each of one kind to each other of another, all at the same time. left: bytes of each."""

    def __init__(self, source: Kind, target: Kind, arrives: Callable[[float], None]) -> None:
        self.arrives = arrives
        # Of a link, how many of the transfers it carries.
        self.links = (
            (("up", source.number), source.others(target)),
            (("down", target.number), target.others(source)),
        )
        self.left = 0.0
        self.rate = 0.0


class Colocated:
    """A run, and when what comes to pass in it; NaN where there is nothing of a kind.

    kind_of: by worker. start, ready: when workers begin a step, and have computed; answered: when servers answer;
    shape (steps, kinds). arrived, pulled: when gradients, and parameters, are there; shape (steps, kinds of servers'
    hosts, kinds of workers).
    """

    def __init__(self, scenario: Scenario, drawn: Floats, apply_seconds: float) -> None:
        cluster, groups = scenario.cluster, kinds(scenario)
        assert groups is not None, "otherwise there is no recurrence"
        self.kinds = [
            Kind(
                number, members, drawn[:, members[0]].tolist(),
                cluster.up(members[0]), cluster.down(members[0]), members[0] < len(scenario.servers),
            )
            for number, members in enumerate(groups)
        ]  # fmt: skip
        self.kind_of = np.empty(cluster.workers, np.intp)
        for kind in self.kinds:
            self.kind_of[kind.members] = kind.number
        self.servers = [kind for kind in self.kinds if kind.serves]
        self.latency, self.apply_seconds = cluster.latency_seconds, apply_seconds
        self.bytes = scenario.gradient_bytes / len(scenario.servers)
        self.capacities = {("up", kind.number): kind.up for kind in self.kinds}
        self.capacities |= {("down", kind.number): kind.down for kind in self.kinds}
        self.steps, number = len(drawn), len(self.kinds)
        self.start, self.ready, self.answered = np.full((3, self.steps, number), math.nan)
        self.arrived, self.pulled = np.full((2, self.steps, number, number), math.nan)
        self.agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self.order = count()
        self.streams: list[Stream] = []  # under way
        # What a server, or a worker, of this kind is still to get in its step.
        self.gradients = [0] * number
        self.parameters = [0] * number

    def by_server(self, away: Floats, at_home: Floats) -> Floats:
        """Times by step and two kinds, and those of a worker with its own server, as (steps, servers, workers)."""
        own = np.arange(sum(len(kind.members) for kind in self.servers))
        hosts = self.kind_of[own]
        found = away[:, hosts[:, None], self.kind_of]
        found[:, own, own] = at_home[:, hosts]
        return np.asarray(found)

    # What happens, each at its moment.

    def compute(self, kind: Kind, step: int, now: float) -> None:
        self.start[step, kind.number] = now
        self.parameters[kind.number] = sum(1 for server in self.servers if kind.others(server)) + kind.serves
        self._at(now + kind.seconds[step], partial(self.push, kind, step))

    def push(self, kind: Kind, step: int, now: float) -> None:
        self.ready[step, kind.number] = now
        for server in self.servers:
            if kind.others(server):
                self._send(kind, server, partial(self.arrive, kind, server, step), now)
        if kind.serves:
            self.receive(kind, step, now)

    def arrive(self, kind: Kind, server: Kind, step: int, now: float) -> None:
        self.arrived[step, server.number, kind.number] = now
        self.receive(server, step, now)

    def receive(self, server: Kind, step: int, now: float) -> None:
        expected = sum(1 for kind in self.kinds if server.others(kind)) + 1
        self.gradients[server.number] += 1
        if self.gradients[server.number] == expected:
            self.gradients[server.number] = 0
            self._at(now + self.apply_seconds, partial(self.answer, server, step))

    def answer(self, server: Kind, step: int, now: float) -> None:
        self.answered[step, server.number] = now
        for kind in self.kinds:
            if server.others(kind):
                self._send(server, kind, partial(self.pull, kind, server, step), now)
        self.go_on(server, step, now)

    def pull(self, kind: Kind, server: Kind, step: int, now: float) -> None:
        self.pulled[step, server.number, kind.number] = now
        self.go_on(kind, step, now)

    def go_on(self, kind: Kind, step: int, now: float) -> None:
        self.parameters[kind.number] -= 1
        if not self.parameters[kind.number] and step + 1 < self.steps:
            self.compute(kind, step + 1, now)

    # The clock and the links.

    def _send(self, source: Kind, target: Kind, arrives: Callable[[float], None], now: float) -> None:
        self._at(now + self.latency, partial(self._join, Stream(source, target, arrives)))

    def _join(self, stream: Stream, _: float) -> None:
        stream.left = self.bytes
        self.streams.append(stream)

    def _at(self, seconds: float, happens: Callable[[float], None]) -> None:
        heappush(self.agenda, (seconds, next(self.order), happens))

    def play(self) -> None:
        """From one event to the next, until nothing is left to happen."""
        for kind in self.kinds:
            self.compute(kind, 0, 0.0)
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
        """Max-min fair rates, as `network.fairness` finds them: the link with the smallest equal share, and so on."""
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


def moments(scenario: Scenario, drawn: Floats, apply_seconds: float) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """When workers start and are ready, and by server when gradients arrive, and answers leave and are there.

    The first two have the shape (steps, workers), as `drawn`, the seconds of each step's work; the others (steps,
    servers, workers).
    """
    run = Colocated(scenario, drawn, apply_seconds)
    run.play()
    answered = np.broadcast_to(run.answered[:, :, None], run.pulled.shape)
    return (
        run.start[:, run.kind_of],
        run.ready[:, run.kind_of],
        run.by_server(run.arrived, at_home=run.ready),
        run.by_server(answered, at_home=run.answered),
        run.by_server(run.pulled, at_home=run.answered),
    )
