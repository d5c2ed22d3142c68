"""The simulated hosts of a run: the clock, and the hosts' NICs on the network."""

from __future__ import annotations

import math
from collections.abc import Generator
from functools import cache
from typing import Any

import simpy

from distsim.cluster import Cluster
from distsim.engine.clock import Clock
from distsim.network import Flow, Network, Route
from distsim.scenario import Scenario
from distsim.trace import Trace, TraceBuilder

ROUNDING = 1e-12  # a wait below this share of the time now counts as no wait: clocks are sums of rounded times


class SimulatedHosts:
    """The hosts of a cluster on one SimPy clock."""

    def __init__(self, cluster: Cluster, hosts: int) -> None:
        self.cluster = cluster
        self.environment = Clock(0.0)
        self.network = Network(self.environment, cluster.capacities(hosts))
        self.route = cache(self._route)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.environment.now

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
