"""The story of workers and parameter servers; the policy's rule decides.

A worker's step is: compute -> push -> wait -> pull. A server's is: receive -> decide -> apply -> answer.
With several servers each keeps a share of the parameters and asks a rule of its own; a worker's step goes on when
all have answered. A colocated server lives on a worker's host, and what it exchanges with that worker takes no time.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

from distsim.engine.stage import Stage, Story, finished
from distsim.errors import InputError
from distsim.network import Flow
from distsim.policies import Rule, WithServer
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


@dataclass
class Push:
    """A gradient for one server: being computed, on its way, or waiting for its turn there."""

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
    flow: simpy.Event


class ServerStory:
    """Workers that push gradients to servers and pull parameters from them."""

    def __init__(self, scenario: Scenario, rules: list[Rule], apply_seconds: float) -> None:
        assert isinstance(scenario.policy, WithServer)
        self.scenario = scenario
        self.policy = scenario.policy
        self.apply_seconds = apply_seconds
        self.stage = Stage(scenario.cluster, scenario.hosts)
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.bytes = scenario.gradient_bytes / len(rules)
        self.last_step = scenario.steps if getattr(self.policy, "stop", "total") == "per_worker" else None
        self.servers = [Server(self, rank, rule) for rank, rule in zip(scenario.servers, rules, strict=True)]
        self.processes = [
            self.stage.environment.process(self.worker(worker)) for worker in range(scenario.cluster.workers)
        ]

    def run(self) -> Trace:
        """Tells the story until the last update has been answered."""
        for server in self.servers:
            self.stage.environment.process(server.serve())
        self.stage.environment.run()
        for server in self.servers:
            server.check_over()
        return finished(self.builder, self.scenario)

    @property
    def over(self) -> bool:
        """Whether every server has made its last update."""
        return all(server.over for server in self.servers)

    def worker(self, worker: int) -> Story:
        """One worker's steps, until the run is over."""
        versions = [0] * len(self.servers)
        step = 0
        while not self.over and step != self.last_step:
            pushes = [
                server.expect(worker, step, version) for server, version in zip(self.servers, versions, strict=True)
            ]
            try:
                # compute
                yield from self.compute(pushes[0])
                if self.over:
                    return
                # push, wait, pull
                versions = yield from self.exchange(pushes)
            except simpy.Interrupt as cancel:
                # pull
                answer = cancel.cause
                assert isinstance(answer, Answer)
                versions = [(yield from self.servers[0].pull(pushes[0], answer, self.stage.now))]
            step += 1

    def compute(self, push: Push) -> Story:
        """A step's work, or as much of it as is done when it is cancelled."""
        index = push.read_version if self.policy.has_global_step else push.step
        start = self.stage.now
        try:
            yield self.stage.environment.timeout(self.compute_times(push.worker, index))
        finally:
            self.builder.span(push.worker, SpanKind.COMPUTE, push.step, start, self.stage.now)

    def exchange(self, pushes: list[Push]) -> Generator[simpy.Event, Any, list[int]]:
        """With each server at once: push, wait, pull; the versions that came back."""
        stories = [server.exchange(push) for server, push in zip(self.servers, pushes, strict=True)]
        if len(stories) == 1:
            return [(yield from stories[0])]
        processes = [self.stage.environment.process(story) for story in stories]
        yield self.stage.environment.all_of(processes)
        versions: list[int] = [process.value for process in processes]  # type: ignore[misc]
        return versions


class Server:
    """One server: its rule, its inbox, and the gradients of the update that is not made yet."""

    def __init__(self, story: ServerStory, rank: int, rule: Rule) -> None:
        self.story = story
        self.stage = story.stage
        self.builder = story.builder
        self.rank = rank
        self.host = story.scenario.host(rank)
        self.rule = rule
        self.fifo = story.scenario.receive == "fifo"
        self.eager = story.scenario.communication.sends == "eager"
        workers = story.scenario.cluster.workers
        self.last_version = story.policy.updates(story.scenario.steps, workers)
        self.version = 0
        self.over = False
        self.inbox: simpy.Store = simpy.Store(self.stage.environment)
        self.mail = [self.stage.environment.event() for _ in range(workers)]
        self.expected: dict[int, Push] = {}  # by worker: the gradient that has not been decided about
        self.waiting: dict[int, Push] = {}  # by worker: the gradient that has, and its worker waits for parameters
        self.pending: list[Push] = []

    # What a worker does with this server.

    def expect(self, worker: int, step: int, version: int) -> Push:
        """A worker begins to compute a gradient on `version` of the parameters."""
        push = self.expected[worker] = Push(worker, step, version)
        self.mail[worker] = self.stage.environment.event()
        return push

    def exchange(self, push: Push) -> Generator[simpy.Event, Any, int]:
        """Push, wait, pull; the version that came back."""
        yield from self.push(push)
        answer: Answer = yield self.mail[push.worker]
        return (yield from self.pull(push, answer, push.arrived_seconds))

    def push(self, push: Push) -> Story:
        """The gradient's way to the server: at once where it receives concurrently, else in its turn."""
        push.ready_seconds = self.stage.now
        if push.worker == self.host:
            push.arrived_seconds = self.stage.now
        elif not self.fifo:
            push.flow = self.stage.send(push.worker, self.host, self.story.bytes)
            yield push.flow
            self.received(push)
        elif self.eager:
            yield self.stage.environment.timeout(self.stage.cluster.route(push.worker, self.host)[1])
        self.inbox.put(push)

    def pull(self, push: Push, answer: Answer, asked_seconds: float) -> Generator[simpy.Event, Any, int]:
        """The parameters' way to the worker; a newer answer takes the place of one still on its way."""
        while True:
            try:
                yield answer.flow
                break
            except simpy.Interrupt as newer:
                assert isinstance(answer.flow, Flow)
                assert isinstance(newer.cause, Answer)
                self.stage.network.abort(answer.flow)
                answer = newer.cause
        if push.worker != self.host:
            self.builder.pull(
                push.worker, self.rank, push.step, self.story.bytes, asked_seconds, answer.start_seconds, self.stage.now
            )
        elif self.stage.now > asked_seconds:
            self.builder.span(push.worker, SpanKind.WAIT, push.step, asked_seconds, self.stage.now)
        return answer.version

    # What the server does.

    def serve(self) -> Story:
        """The server's work, until it has made the last update."""
        while not self.over:
            # receive
            push: Push = yield self.inbox.get()
            if push.cancelled:
                continue
            if self.fifo and push.worker != self.host:
                yield from self.receive_in_turn(push)
                if push.cancelled:
                    continue
            # decide
            decision = self.rule.arrived(push.worker, push.step, push.read_version)
            del self.expected[push.worker]
            self.waiting[push.worker] = push
            if decision.applied:
                self.pending.append(push)
            else:
                self.builder.not_applied(push.worker, push.step, push.read_version, cancelled=False, server=self.rank)
            # apply
            if decision.version is not None:
                yield from self.apply(decision.version, push)
            # answer
            for worker, version in decision.answers:
                self.answer(worker, version, push)

    def receive_in_turn(self, push: Push) -> Story:
        """A fifo server turns to one gradient after the other; with rendezvous sends each turn pays the latency."""
        push.flow = self.stage.send(push.worker, self.host, self.story.bytes, 0.0 if self.eager else None)
        yield push.flow
        self.received(push)

    def received(self, push: Push) -> None:
        """The gradient is here."""
        assert push.flow is not None
        push.arrived_seconds = self.stage.now
        self.builder.push(
            push.worker, self.rank, push.step, self.story.bytes,
            push.ready_seconds, self.stage.now, began_seconds=push.flow.start_seconds,
        )  # fmt: skip

    def apply(self, version: int, push: Push) -> Story:
        """The pending gradients become a new version of the parameters."""
        if version != self.version + 1:
            raise nonsense(
                push, f"made version {version}", f"version {self.version + 1} comes next", "count on from it"
            )
        applied, self.pending = self.pending, []
        if self.story.apply_seconds > 0.0:
            start = self.stage.now
            yield self.stage.environment.timeout(self.story.apply_seconds)
            self.builder.span(self.rank, SpanKind.APPLY, version - 1, start, self.stage.now)
        for gradient in applied:
            self.builder.applied(version, gradient.worker, gradient.step, gradient.read_version, self.rank)
        self.builder.update(version, self.stage.now, self.rank)
        self.version = version
        self.over = version == self.last_version

    def answer(self, worker: int, version: int, push: Push) -> None:
        """Parameters leave for a worker; if it is not waiting for them, what it does is cancelled."""
        if version != self.version:
            raise nonsense(
                push,
                f"answered worker {worker} with version {version}",
                f"the server holds {self.version}",
                "answer with that",
            )
        flow = (
            self.stage.send(self.host, worker, self.story.bytes)
            if worker != self.host
            else self.stage.environment.event().succeed()
        )
        answer = Answer(version, self.stage.now, flow)
        if worker in self.waiting:
            del self.waiting[worker]
            self.mail[worker].succeed(answer)
        elif getattr(self.rule, "cancel", False):
            self.cancel(worker)
            self.story.processes[worker].interrupt(answer)
        else:
            raise nonsense(
                push, f"answered worker {worker}", "that worker waits for no answer",
                "answer each gradient once, or give the rule an attribute cancel = True",
            )  # fmt: skip

    def cancel(self, worker: int) -> None:
        """The gradient that a worker is computing or sending is no longer wanted."""
        push = self.expected.pop(worker, None)
        if push is None:
            return  # it is still receiving parameters that a newer version now replaces
        push.cancelled = True
        if push.flow is not None and not push.flow.triggered:
            self.stage.network.abort(push.flow)
            self.builder.span(worker, SpanKind.SEND, push.step, push.ready_seconds, self.stage.now, label="cancelled")
        self.builder.not_applied(worker, push.step, push.read_version, cancelled=True, server=self.rank)

    def check_over(self) -> None:
        """Raises InputError where everybody waits for an answer that the rule never gave."""
        if not self.over and self.waiting:
            push = next(iter(self.waiting.values()))
            raise nonsense(
                push, f"made {self.version} of {self.last_version} updates",
                "every worker waits and nothing is on its way", "answer every gradient in the end",
            )  # fmt: skip


def nonsense(push: Push, what: str, rule: str, cure: str) -> InputError:
    """The error for a rule that decided something impossible."""
    return InputError.of(f"the rule, asked about worker {push.worker}'s step {push.step},", what, rule, cure)
