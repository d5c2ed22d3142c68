"""The reference engine: a run told as SimPy processes, one per worker and one per server.

Among peers, a worker's step is: compute; all-reduce.
With a server, a worker's step is: compute; push; wait; pull. The server's is: receive; decide; apply; answer.
`runtime/peers` and `runtime/server` tell the same two stories with real processes, in the same order.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

from distsim.collectives import Transfer, ring
from distsim.engine.collective import CollectiveCall, Gates
from distsim.engine.stage import Stage
from distsim.network import Flow
from distsim.policies import Rule
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder

Story = Generator[simpy.Event, Any, None]


def run(scenario: Scenario, apply_seconds: float = 0.0) -> Trace:
    """Simulates `scenario`. apply_seconds: a server's own work for each update."""
    if scenario.communication.kind == "parameter_server":
        return ServerStory(scenario, scenario.policy.rule(scenario.cluster.workers), apply_seconds).run()
    return PeersStory(scenario).run()


def finished(builder: TraceBuilder, scenario: Scenario) -> Trace:
    """The trace of a simulated run."""
    return builder.build(
        workers=scenario.cluster.workers, servers=len(scenario.servers), producer="simulated",
        scenario=scenario.table(), seed=scenario.seed, engine="story",
    )  # fmt: skip


class PeersStory:
    """Workers that sum their gradients among themselves."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.stage = Stage(scenario.cluster, scenario.ranks)
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.schedule = ring(scenario.cluster.workers)
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


@dataclass
class Push:
    """A gradient: being computed, on its way, or waiting for its turn at the server."""

    worker: int
    step: int
    read_version: int
    ready_seconds: float = 0.0
    arrived_seconds: float = 0.0
    flow: Flow | None = None
    cancelled: bool = False


@dataclass(frozen=True)
class Answer:
    """Parameters of one version on their way to a worker."""

    version: int
    start_seconds: float
    flow: Flow


class ServerStory:
    """Workers that push gradients to a server and pull parameters from it; the policy's rule decides."""

    def __init__(self, scenario: Scenario, rule: Rule, apply_seconds: float) -> None:
        self.scenario = scenario
        self.stage = Stage(scenario.cluster, scenario.ranks)
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.rule = rule
        self.apply_seconds = apply_seconds
        (self.server,) = scenario.servers
        workers = scenario.cluster.workers
        self.last_version = scenario.policy.updates(scenario.steps, workers)
        self.over = False
        self.inbox: simpy.Store = simpy.Store(self.stage.environment)
        self.mail = [self.stage.environment.event() for _ in range(workers)]
        self.computing: dict[int, Push] = {}  # by worker: the gradient that the server has not decided about
        self.waiting: set[int] = set()  # workers whose gradient has been decided about
        self.pending: list[Push] = []  # gradients for the update that is not made yet
        self.processes = [self.stage.environment.process(self.worker(worker)) for worker in range(workers)]

    def run(self) -> Trace:
        """Tells the story until the last update has been answered."""
        self.stage.environment.process(self.serve())
        self.stage.environment.run()
        return finished(self.builder, self.scenario)

    def worker(self, worker: int) -> Story:
        """One worker's steps, until the run is over."""
        version = step = 0
        while not self.over:
            push = self.computing[worker] = Push(worker, step, version)
            self.mail[worker] = self.stage.environment.event()
            try:
                # compute
                yield from self.compute(push)
                if self.over:
                    return
                # push
                yield from self.push(push)
                # wait
                answer: Answer = yield self.mail[worker]
                asked = push.arrived_seconds
            except simpy.Interrupt as cancel:
                assert isinstance(cancel.cause, Answer)
                answer, asked = cancel.cause, self.stage.now
            # pull
            version = yield from self.pull(push, answer, asked)
            step += 1

    def compute(self, push: Push) -> Story:
        """A step's work, or as much of it as is done when it is cancelled."""
        index = push.read_version if self.scenario.policy.has_global_step else push.step
        start = self.stage.now
        try:
            yield self.stage.environment.timeout(self.compute_times(push.worker, index))
        finally:
            self.builder.span(push.worker, SpanKind.COMPUTE, push.step, start, self.stage.now)

    def push(self, push: Push) -> Story:
        """The gradient's way to the server: at once where it receives concurrently, else in its turn."""
        push.ready_seconds = self.stage.now
        latency = self.scenario.cluster.latency_seconds
        if self.scenario.receive == "concurrent":
            push.flow = self.stage.send(push.worker, self.server, self.scenario.gradient_bytes, latency)
            yield push.flow
            self.received(push)
        elif self.scenario.communication.sends == "eager":
            yield self.stage.environment.timeout(latency)
        self.inbox.put(push)

    def received(self, push: Push) -> None:
        """The gradient is at the server."""
        assert push.flow is not None
        push.arrived_seconds = self.stage.now
        self.builder.push(
            push.worker, self.server, push.step, self.scenario.gradient_bytes,
            push.ready_seconds, self.stage.now, began_seconds=push.flow.start_seconds,
        )  # fmt: skip

    def pull(self, push: Push, answer: Answer, asked_seconds: float) -> Generator[simpy.Event, Any, int]:
        """The parameters' way to the worker; a newer answer takes the place of one still on its way."""
        while True:
            try:
                yield answer.flow
                break
            except simpy.Interrupt as newer:
                self.stage.network.abort(answer.flow)
                assert isinstance(newer.cause, Answer)
                answer = newer.cause
        self.builder.pull(
            push.worker,
            self.server,
            push.step,
            self.scenario.gradient_bytes,
            asked_seconds,
            answer.start_seconds,
            self.stage.now,
        )
        return answer.version

    def serve(self) -> Story:
        """The server's work, until it has made the last update."""
        while not self.over:
            # receive
            push: Push = yield self.inbox.get()
            if push.cancelled:
                continue
            if self.scenario.receive == "fifo":
                yield from self.receive_in_turn(push)
                if push.cancelled:
                    continue
            # decide
            decision = self.rule.arrived(push.worker, push.step, push.read_version)
            del self.computing[push.worker]
            self.waiting.add(push.worker)
            if decision.applied:
                self.pending.append(push)
            else:
                self.builder.not_applied(push.worker, push.step, push.read_version, cancelled=False, server=self.server)
            # apply
            if decision.version is not None:
                yield from self.apply(decision.version)
            # answer
            for worker, version in decision.answers:
                self.answer(worker, version)

    def receive_in_turn(self, push: Push) -> Story:
        """A fifo server turns to one gradient after the other; with rendezvous sends each turn pays the latency."""
        eager = self.scenario.communication.sends == "eager"
        latency = 0.0 if eager else self.scenario.cluster.latency_seconds
        push.flow = self.stage.send(push.worker, self.server, self.scenario.gradient_bytes, latency)
        yield push.flow
        self.received(push)

    def apply(self, version: int) -> Story:
        """The pending gradients become a new version of the parameters."""
        applied, self.pending = self.pending, []
        if self.apply_seconds > 0.0:
            start = self.stage.now
            yield self.stage.environment.timeout(self.apply_seconds)
            self.builder.span(self.server, SpanKind.APPLY, version - 1, start, self.stage.now)
        for push in applied:
            self.builder.applied(version, push.worker, push.step, push.read_version, self.server)
        self.builder.update(version, self.stage.now, self.server)
        self.over = version == self.last_version

    def answer(self, worker: int, version: int) -> None:
        """Parameters leave for a worker; if it is not waiting for them, what it does is cancelled."""
        answer = Answer(version, self.stage.now, self.stage.send(self.server, worker, self.scenario.gradient_bytes))
        if worker in self.waiting:
            self.waiting.remove(worker)
            self.mail[worker].succeed(answer)
        else:
            self.cancel(worker)
            self.processes[worker].interrupt(answer)

    def cancel(self, worker: int) -> None:
        """The gradient that a worker is computing or sending is no longer wanted."""
        push = self.computing.pop(worker, None)
        if push is None:
            return  # it is still receiving parameters that a newer version now replaces
        push.cancelled = True
        if push.flow is not None and not push.flow.triggered:
            self.stage.network.abort(push.flow)
            self.builder.span(worker, SpanKind.SEND, push.step, push.ready_seconds, self.stage.now, label="cancelled")
        self.builder.not_applied(worker, push.step, push.read_version, cancelled=True, server=self.server)
