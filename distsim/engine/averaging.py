"""The server of local SGD: receive -> apply -> answer.

receive     it takes several models at once, or, fifo, one after the other in order of arrival.
apply       when it has all of them: its own work on the average.
answer      the average leaves for everybody.
"""

from __future__ import annotations

import simpy

from distsim.engine.simulated_hosts import Stage, Story, Way
from distsim.network import Flow
from distsim.scenario import Scenario
from distsim.trace import SpanKind, TraceBuilder


class AveragingServer:
    """Sends for a collective whose transfers all come from workers to this server, or go from it to them."""

    def __init__(self, stage: Stage, scenario: Scenario, builder: TraceBuilder, apply_seconds: float) -> None:
        self.stage = stage
        self.builder = builder
        self.apply_seconds = apply_seconds
        self.rank = scenario.servers[0]
        self.host = scenario.host(self.rank)
        self.fifo = scenario.receive == "fifo"
        self.eager = scenario.communication.sends == "eager"
        self.turn = simpy.Resource(stage.environment)
        self.applied: simpy.Event | None = None
        self.averages = 0

    def send(self, source: int, target: int, num_bytes: float) -> Flow | Way:
        """A model on its way to the server, or the average on its way to a worker."""
        way = Way(self.stage.environment)
        if target == self.host and self.fifo:
            self.stage.environment.process(self.receive_in_turn(way, source, num_bytes))
        elif source == self.host and self.apply_seconds > 0.0:
            self.stage.environment.process(self.answer(way, target, num_bytes))
        else:
            return self.stage.send(source, target, num_bytes)
        return way

    def receive_in_turn(self, way: Way, worker: int, num_bytes: float) -> Story:
        """With rendezvous sends each turn pays the latency."""
        if self.eager:
            yield self.stage.environment.timeout(self.stage.cluster.route(worker, self.host)[1])
        with self.turn.request() as turn:
            yield turn
            way.start_seconds = self.stage.now
            yield self.stage.send(worker, self.host, num_bytes, 0.0 if self.eager else None)
        way.succeed()

    def answer(self, way: Way, worker: int, num_bytes: float) -> Story:
        """Nobody is answered before the average is applied."""
        if self.applied is None or self.applied.processed:
            self.applied = self.stage.environment.process(self.apply())
        yield self.applied
        way.start_seconds = self.stage.now
        yield self.stage.send(self.host, worker, num_bytes)
        way.succeed()

    def apply(self) -> Story:
        """The server's own work."""
        start = self.stage.now
        yield self.stage.environment.timeout(self.apply_seconds)
        self.builder.span(self.rank, SpanKind.APPLY, self.averages, start, self.stage.now)
        self.averages += 1
