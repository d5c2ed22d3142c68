"""The simulated hosts of a run: the clock, the hosts' NICs on the network, and cores where they are shared."""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable
from functools import cache
from typing import Any

import simpy

from distsim.cluster import Cluster
from distsim.cores import Cores
from distsim.engine.clock import Clock
from distsim.network import Flow, Network, Route
from distsim.scenario import Scenario
from distsim.trace import Trace, TraceBuilder

SHORTEST_FREE_SECONDS = 1e-5  # a worker that goes on with its next piece leaves its core to nobody
ROUNDING = 1e-12  # a wait below this share of the time now counts as no wait: clocks are sums of rounded times


class SimulatedHosts:
    """The hosts of a cluster on one SimPy clock.

    cores: where all hosts are ranks of one machine, the cores that they share; None: each host has its own.
    """

    def __init__(self, cluster: Cluster, hosts: int, cores: Cores | None = None) -> None:
        self.cluster = cluster
        self.cores = cores
        self._computing = 0  # how many workers compute on the shared cores now
        self.environment = Clock(0.0)
        self._core_free = self.environment.event()  # the next time that a core becomes free of them
        links = cluster.capacities(hosts)
        capacities: dict[Hashable, float] = dict(links)
        if cores is not None:
            # The work on bytes goes on no faster than a link brings them.
            capacities |= {("work", *link): cores.byte_seconds * rate for link, rate in links.items()}
            capacities |= {"cores": cores.capacity}
            capacities |= {(use, host): 1.0 for use in ("compute", "exchange") for host in range(hosts)}
        self.network = Network(self.environment, capacities)
        self.route = cache(self._route)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.environment.now

    def work(self, worker: int, drawn_seconds: float, core_seconds: float = 0.0) -> Story:
        """Part of a step of `worker`: it computes for so many core-seconds, and then the drawn time passes.

        Where cores are shared, a worker computes on one core at most, and on what the other ranks leave of all cores.
        """
        if self.cores is not None and core_seconds > 0.0:
            yield from self._in_the_way(self.network.transfer((("compute", worker), "cores"), core_seconds, 0.0))
            core_seconds = 0.0
        yield self.environment.timeout(drawn_seconds + core_seconds)

    def wake(self) -> Story:
        """A worker that waited for parameters wakes up on shared cores. Messages wait as if it computed."""
        assert self.cores is not None
        yield from self._in_the_way(self.environment.timeout(self.cores.wake_seconds))

    def _in_the_way(self, computed: simpy.Event) -> Story:
        """Until the event happens, messages wait for a turn behind a worker."""
        assert self.cores is not None
        self._computing += 1
        yield computed
        self._computing -= 1
        if self._computing < self.cores.count:
            self._core_free.succeed()
            self._core_free = self.environment.event()

    def exchange(self, source: int, target: int, num_bytes: float) -> Flow | DelayedTransfer:
        """Sends bytes as `send` does; where cores are shared, both ends spend core-seconds on them meanwhile.

        The transfer ends when its bytes have arrived and both ends have done their work. Where a worker computes on
        each core, it waits for its turn: when it is sent, and again when it has arrived. Where several workers compute
        on a core, their turns come one after the other.
        """
        if self.cores is None:
            return self.send(source, target, num_bytes)
        transfer = DelayedTransfer(self.environment)
        transfer.start_seconds = self.now
        links, _ = self.cluster.route(source, target)
        ends = []
        for end, link in ((source, links[0]), (target, links[-1])):
            ends.append(self.exchange_work(end, self.cores.message_seconds))
            ends.append(self.exchange_work(end, self.cores.byte_seconds * num_bytes, ("work", *link)))
        carried = self.environment.process(self._carried(source, target, num_bytes))

        def over(_: simpy.Event) -> None:
            transfer.succeed()

        self.environment.all_of([*ends, carried]).callbacks.append(over)
        return transfer

    def _carried(self, source: int, target: int, num_bytes: float) -> Story:
        """A message that waits for its turns on shared cores."""
        assert self.cores is not None
        yield from self._turn(self.cores.turn_seconds)
        yield self.send(source, target, num_bytes)
        yield from self._turn(self.cores.arrival_turn_seconds)

    def _turn(self, seconds: float) -> Story:
        """Where a worker computes on each core, waits for so long behind each of them, or until a core is free."""
        assert self.cores is not None
        end = self.now + seconds * self._computing / self.cores.count
        while self._computing >= self.cores.count and self.now < end:
            yield self.environment.any_of([self.environment.timeout(end - self.now), self._core_free])
            if self.now < end:
                yield self.environment.timeout(min(SHORTEST_FREE_SECONDS, end - self.now))

    def exchange_work(self, host: int, core_seconds: float, *link: Hashable) -> Flow:
        """Work that an exchange makes at one of its ends, beside what the rank computes. Cores must be shared.

        link: that brings the bytes worked on, if any.
        """
        return self.network.transfer((*link, ("exchange", host), "cores"), core_seconds, 0.0)

    def send(self, source: int, target: int, num_bytes: float, latency_seconds: float | None = None) -> Flow:
        """Sends bytes from one host to another. The default latency is the route's."""
        flow = self.flow(source, target, num_bytes, latency_seconds)
        self.network.start(flow)
        return flow

    def flow(self, source: int, target: int, num_bytes: float, latency_seconds: float | None = None) -> Flow:
        """The flow of `send`, to be started later."""
        route, latency = self.route(source, target)
        return Flow(self.environment, route, num_bytes, latency if latency_seconds is None else latency_seconds)

    def _route(self, source: int, target: int) -> tuple[Route, float]:
        """The links from one host to another, and their latency in seconds."""
        links, latency = self.cluster.route(source, target)
        return self.network.route(links), latency


class DelayedTransfer(simpy.Event):
    """A transfer that starts later than requested. As an event it happens when the last byte has arrived."""

    start_seconds = math.nan


Story = Generator[simpy.Event, Any, None]


def finished(builder: TraceBuilder, scenario: Scenario) -> Trace:
    """The trace of a run of SimPy processes."""
    return builder.build(
        workers=scenario.cluster.workers,
        servers=len(scenario.servers),
        producer="simulated",
        scenario=scenario.table(),
        seed=scenario.seed,
        engine="story",
    )
