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
        capacities: dict[Hashable, float] = dict(cluster.capacities(hosts))
        if cores is not None:
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
            self._computing += 1
            yield self.network.transfer((("compute", worker), "cores"), core_seconds, 0.0)
            self._computing -= 1
            core_seconds = 0.0
        yield self.environment.timeout(drawn_seconds + core_seconds)

    def exchange(self, source: int, target: int, num_bytes: float) -> Flow | DelayedTransfer:
        """Sends bytes as `send` does; where cores are shared, both ends spend core-seconds on them meanwhile.

        The transfer ends when its bytes have arrived and both ends have done their work. Where a worker computes on
        each core, it waits for its turn: when it is sent, and again when it has arrived.
        """
        if self.cores is None:
            return self.send(source, target, num_bytes)
        turn = self._turn(self.cores.turn_seconds)
        arrival_turn = self.cores.arrival_turn_seconds
        sent = self.send(source, target, num_bytes, self.route(source, target)[1] + turn)
        work = self.cores.exchange_seconds(num_bytes)
        ends = [self.exchange_work(end, work) for end in (source, target)]
        transfer = DelayedTransfer(self.environment)
        transfer.start_seconds = self.now
        left = 1 + len(ends)

        def over(_: simpy.Event) -> None:
            nonlocal left
            left -= 1
            if not left:
                transfer.succeed()

        def arrived(event: simpy.Event) -> None:
            if wait := self._turn(arrival_turn):
                self.environment.timeout(wait).callbacks.append(over)
            else:
                over(event)

        sent.callbacks.append(arrived)
        for part in ends:
            part.callbacks.append(over)
        return transfer

    def _turn(self, seconds: float) -> float:
        """The wait for a turn now: so long where a worker computes on each core, and none else."""
        assert self.cores is not None
        return seconds if self._computing >= self.cores.count else 0.0

    def exchange_work(self, host: int, core_seconds: float) -> Flow:
        """Work that an exchange makes at one of its ends, beside what the rank computes. Cores must be shared."""
        return self.network.transfer((("exchange", host), "cores"), core_seconds, 0.0)

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
