"""The server of local SGD: receive -> apply -> answer.

receive     a fifo server receives the models one after the other in order of arrival, another server several at once.
apply       the server's own work on the average, when it has all models.
answer      the average leaves for every worker.
"""

from __future__ import annotations

import simpy

from distsim.engine.simulated_hosts import DelayedTransfer, SimulatedHosts, Story
from distsim.network import Flow
from distsim.scenario import Scenario
from distsim.trace import SpanKind, TraceBuilder


class AveragingServer:
    """The sends of a collective in which workers exchange data only with this server."""

    def __init__(self, hosts: SimulatedHosts, scenario: Scenario, builder: TraceBuilder, apply_seconds: float) -> None:
        self.hosts = hosts
        self.builder = builder
        self.apply_seconds = apply_seconds
        self.rank = scenario.servers[0]
        self.host = scenario.host(self.rank)
        self.fifo = scenario.receive == "fifo"
        self.eager = scenario.communication.sends == "eager"
        self.turn = simpy.Resource(hosts.environment)
        self.applied: simpy.Event | None = None
        self.averages = 0

    def send(self, source: int, target: int, num_bytes: float) -> Flow | DelayedTransfer:
        """A model on its transfer to the server, or the average on its transfer to a worker."""
        transfer = DelayedTransfer(self.hosts.environment)
        if target == self.host and self.fifo:
            self.hosts.environment.process(self.receive_in_turn(transfer, source, num_bytes))
        elif source == self.host and self.apply_seconds > 0.0:
            self.hosts.environment.process(self.answer(transfer, target, num_bytes))
        else:
            return self.hosts.send(source, target, num_bytes)
        return transfer

    def receive_in_turn(self, transfer: DelayedTransfer, worker: int, num_bytes: float) -> Story:
        """Receives one model after the other. With rendezvous sends, each model pays the latency."""
        if self.eager:
            yield self.hosts.environment.timeout(self.hosts.cluster.route(worker, self.host)[1])
        with self.turn.request() as turn:
            yield turn
            transfer.start_seconds = self.hosts.now
            yield self.hosts.send(worker, self.host, num_bytes, 0.0 if self.eager else None)
        transfer.succeed()

    def answer(self, transfer: DelayedTransfer, worker: int, num_bytes: float) -> Story:
        """Sends the average to a worker as soon as the average is applied."""
        if self.applied is None or self.applied.processed:
            self.applied = self.hosts.environment.process(self.apply())
        yield self.applied
        transfer.start_seconds = self.hosts.now
        yield self.hosts.send(self.host, worker, num_bytes)
        transfer.succeed()

    def apply(self) -> Story:
        """The server's own work."""
        start = self.hosts.now
        yield self.hosts.environment.timeout(self.apply_seconds)
        self.builder.span(self.rank, SpanKind.APPLY, self.averages, start, self.hosts.now)
        self.averages += 1
