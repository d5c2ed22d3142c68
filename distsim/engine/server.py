"""The story of workers and parameter servers; the policy's rule decides.

A worker's step is: compute -> push -> wait -> pull. A server's is: receive -> decide -> apply -> answer.
With several servers each keeps a share of the parameters and asks a rule of its own; a worker's step goes on when
all have answered. A colocated server lives on a worker's host, and what it exchanges with that worker takes no time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import simpy

from distsim.engine.stage import Stage, Story, finished
from distsim.errors import InputError
from distsim.network import Flow
from distsim.policies import Rule, WithServer
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


@dataclass(slots=True)
class Push:
    """A gradient for one server: being computed, on its way, or waiting for its turn there."""

    worker: int
    step: int
    read_version: int
    ready_seconds: float = 0.0
    arrived_seconds: float = 0.0
    flow: Flow | None = None
    cancelled: bool = False


@dataclass(slots=True)
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
        self.environment = self.stage.environment
        self.compute_times = scenario.compute_times()
        self.builder = TraceBuilder()
        self.bytes = scenario.gradient_bytes / len(rules)
        self.last_step = scenario.steps if getattr(self.policy, "stop", "total") == "per_worker" else None
        self.servers = [Server(self, rank, rule) for rank, rule in zip(scenario.servers, rules, strict=True)]
        self.going_on = len(self.servers)  # those that have not made their last update
        self.processes = [self.environment.process(self.worker(worker)) for worker in range(scenario.cluster.workers)]

    def run(self) -> Trace:
        """Tells the story until the last update has been answered."""
        for server in self.servers:
            self.environment.process(server.serve())
        self.environment.run()
        for server in self.servers:
            server.check_over()
        return finished(self.builder, self.scenario)

    def worker(self, worker: int) -> Story:
        """One worker's steps, until the run is over."""
        step = 0
        while self.going_on and step != self.last_step:
            pushes = [server.expect(worker, step) for server in self.servers]
            try:
                # compute
                yield from self.compute(pushes[0])
                if not self.going_on:
                    return
                # push, wait, pull
                yield from self.exchange(pushes)
            except simpy.Interrupt as cancel:
                # pull
                assert isinstance(cancel.cause, Answer)
                yield from self.servers[0].pull(pushes[0], cancel.cause, self.environment.now)
            step += 1

    def compute(self, push: Push) -> Story:
        """A step's work, or as much of it as is done when it is cancelled."""
        index = push.read_version if self.policy.has_global_step else push.step
        start = self.environment.now
        try:
            yield self.environment.timeout(self.compute_times(push.worker, index))
        finally:
            self.builder.span(push.worker, SpanKind.COMPUTE, push.step, start, self.environment.now)

    def exchange(self, pushes: list[Push]) -> Story:
        """With each server at once: push, wait, pull."""
        if len(pushes) == 1:
            yield from self.servers[0].exchange(pushes[0])
        else:
            stories = [server.exchange(push) for server, push in zip(self.servers, pushes, strict=True)]
            yield self.environment.all_of([self.environment.process(story) for story in stories])


class Server:
    """One server: its rule, its inbox, and the gradients of the update that is not made yet."""

    def __init__(self, story: ServerStory, rank: int, rule: Rule) -> None:
        self.story = story
        self.stage = story.stage
        self.environment = story.environment
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
        self.inbox: deque[Push] = deque()
        self.listening: simpy.Event | None = None  # while the inbox is empty and the server waits
        self.mail = [self.environment.event() for _ in range(workers)]
        self.read_versions = [0] * workers
        self.expected: dict[int, Push] = {}  # by worker: the gradient that has not been decided about
        self.waiting: dict[int, Push] = {}  # by worker: the gradient that has, and its worker waits for parameters
        self.pending: list[Push] = []

    # What a worker does with this server.

    def expect(self, worker: int, step: int) -> Push:
        """A worker begins to compute a gradient on the parameters that it has pulled last."""
        push = self.expected[worker] = Push(worker, step, self.read_versions[worker])
        self.mail[worker] = self.environment.event()
        return push

    def exchange(self, push: Push) -> Story:
        """A gradient's way to the server, at once where it receives concurrently, else in its turn; and the answer."""
        # push
        push.ready_seconds = self.environment.now
        if push.worker == self.host:
            push.arrived_seconds = push.ready_seconds
        elif not self.fifo:
            yield from self.carry(push)
        elif self.eager:
            yield self.environment.timeout(self.stage.route(push.worker, self.host)[1])
        self.deliver(push)
        # wait
        answer: Answer = yield self.mail[push.worker]
        # pull
        yield from self.pull(push, answer, push.arrived_seconds)

    def pull(self, push: Push, answer: Answer, asked_seconds: float) -> Story:
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
        now = self.environment.now
        if push.worker != self.host:
            self.builder.pull(
                push.worker, self.rank, push.step, self.story.bytes, asked_seconds, answer.start_seconds, now
            )
        elif now > asked_seconds:
            self.builder.span(push.worker, SpanKind.WAIT, push.step, asked_seconds, now)
        self.read_versions[push.worker] = answer.version

    # What the server does.

    def serve(self) -> Story:
        """The server's work, until it has made the last update."""
        while not self.over:
            # receive
            push: Push = yield self.next_push()
            if push.cancelled:
                continue
            if self.fifo and push.worker != self.host:
                yield from self.carry(push)
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

    def deliver(self, push: Push) -> None:
        """The server knows of a gradient from now on."""
        if self.listening:
            self.listening.succeed(push)
            self.listening = None
        else:
            self.inbox.append(push)

    def next_push(self) -> simpy.Event:
        """Happens with the first gradient that the server knows of and has not taken yet."""
        event = self.environment.event()
        if self.inbox:
            event.succeed(self.inbox.popleft())
        else:
            self.listening = event
        return event

    def carry(self, push: Push) -> Story:
        """The gradient's bytes; in a fifo server's turn, which pays the latency where sends are rendezvous."""
        latency = 0.0 if self.fifo and self.eager else None
        push.flow = flow = self.stage.send(push.worker, self.host, self.story.bytes, latency)
        yield flow
        push.arrived_seconds = now = self.environment.now
        self.builder.push(
            push.worker, self.rank, push.step, self.story.bytes, push.ready_seconds, now, flow.start_seconds
        )

    def apply(self, version: int, push: Push) -> Story:
        """The pending gradients become a new version of the parameters."""
        if version != self.version + 1:
            raise nonsense(
                push, f"made version {version}", f"version {self.version + 1} comes next", "count on from it"
            )
        applied, self.pending = self.pending, []
        start = self.environment.now
        if self.story.apply_seconds > 0.0:
            yield self.environment.timeout(self.story.apply_seconds)
            self.builder.span(self.rank, SpanKind.APPLY, version - 1, start, self.environment.now)
        for gradient in applied:
            self.builder.applied(version, gradient.worker, gradient.step, gradient.read_version, self.rank)
        self.builder.update(version, self.environment.now, self.rank)
        self.version = version
        self.over = version == self.last_version
        self.story.going_on -= self.over

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
            else self.environment.event().succeed()
        )
        answer = Answer(version, self.environment.now, flow)
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
            self.builder.span(worker, SpanKind.SEND, push.step, push.ready_seconds, self.environment.now, label="cancelled")
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
