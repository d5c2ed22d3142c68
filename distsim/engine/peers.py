"""The story of workers that sum their gradients among themselves: compute -> all-reduce, at each step."""

from __future__ import annotations

from distsim.collectives import Transfer
from distsim.engine.collective import CollectiveCall, Gates
from distsim.engine.stage import Stage, Story, finished
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


class PeersStory:
    """Workers that sum their gradients among themselves."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.stage = Stage(scenario.cluster, scenario.ranks)
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.schedule = scenario.schedule()
        self.gates = Gates.of(self.schedule, scenario.communication.sends)
        self.calls: dict[int, CollectiveCall] = {}
        self.arrivals: dict[int, list[float]] = {}
        self.ends: dict[int, list[float]] = {}

    def run(self) -> Trace:
        """Tells the story to its end."""
        for worker in range(self.scenario.cluster.workers):
            self.stage.environment.process(self.worker(worker))
        self.stage.environment.run()
        for step, ends in self.ends.items():
            self.builder.all_reduce(step, self.scenario.gradient_bytes, self.arrivals[step], ends)
        return finished(self.builder, self.scenario)

    def worker(self, worker: int) -> Story:
        """One worker's steps."""
        for step in range(self.scenario.steps):
            # compute
            start = self.stage.now
            yield self.stage.environment.timeout(self.compute_times(worker, step))
            self.builder.span(worker, SpanKind.COMPUTE, step, start, self.stage.now)
            # all-reduce
            self.arrivals.setdefault(step, [0.0] * self.schedule.workers)[worker] = self.stage.now
            yield self.all_reduce(step).join(worker)
            self.ends.setdefault(step, [0.0] * self.schedule.workers)[worker] = self.stage.now

    def all_reduce(self, step: int) -> CollectiveCall:
        """The call of this step, made by the first worker that arrives."""
        if step not in self.calls:
            chunk_bytes = self.scenario.gradient_bytes / self.schedule.chunks

            def carried(transfer: Transfer, num_bytes: float, start_seconds: float, end_seconds: float) -> None:
                self.builder.transfer(
                    transfer.source, transfer.target, num_bytes, start_seconds, end_seconds, transfer.chunk, step
                )

            self.calls[step] = CollectiveCall(self.stage.environment, self.gates, chunk_bytes, self.stage.send, carried)
        return self.calls[step]
