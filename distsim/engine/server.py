"""The story of workers and parameter servers. The policy's rule decides about each gradient.

A worker's step is compute -> push -> wait -> pull. A server's step is receive -> decide -> apply -> answer.
Each of several servers keeps a share of the parameters and asks its own rule; a worker goes on when all servers have
answered. A colocated server runs on a worker's host; its exchange with that worker takes no time.
"""

from __future__ import annotations

import math
from collections import deque

import simpy

from distsim.engine.exchange import Push, write_contributions, write_exchanges
from distsim.engine.simulated_hosts import SimulatedHosts, Story, finished
from distsim.network import Flow
from distsim.policies import Rule, WithServer
from distsim.policies.rule_errors import no_answer, unasked_answer, wrong_answer, wrong_version
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


class ServerStory:
    """Workers that push gradients to servers and pull parameters from them."""

    def __init__(self, scenario: Scenario, rules: list[Rule], apply_seconds: float) -> None:
        assert isinstance(scenario.policy, WithServer)
        self.scenario = scenario
        self.policy = scenario.policy
        self.apply_seconds = apply_seconds
        self.hosts = SimulatedHosts(scenario.cluster, scenario.hosts)
        self.environment = self.hosts.environment
        self.compute_times = scenario.simulated_times()
        self.builder = TraceBuilder()
        self.bytes = scenario.gradient_bytes / len(rules)
        self.last_step = scenario.steps if getattr(self.policy, "stop", "total") == "per_worker" else None
        self.servers = [Server(self, rank, rule) for rank, rule in zip(scenario.servers, rules, strict=True)]
        self.going_on = len(self.servers)  # servers that have not made their last update
        self.end_seconds = math.inf  # when all have made it
        self.processes = [self.environment.process(self.worker(worker)) for worker in range(scenario.cluster.workers)]

    def run(self) -> Trace:
        """Simulates the run until the last update has been answered."""
        for server in self.servers:
            self.environment.process(server.serve())
        self.environment.run()
        for server in self.servers:
            server.check_over()
        self.tell()
        return finished(self.builder, self.scenario)

    def tell(self) -> None:
        """Writes the rows of the trace."""
        for server in self.servers:
            server.tell()

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
            except simpy.Interrupt:
                # pull: its only server has cancelled this step
                yield from self.servers[0].pull(pushes[0])
            step += 1

    def compute(self, push: Push) -> Story:
        """Does the work of a step, until the work is done or the step is cancelled."""
        index = push.read_version if self.policy.has_global_step else push.step
        push.start_seconds = self.environment.now
        try:
            yield self.environment.timeout(self.compute_times(push.worker, index))
        finally:
            push.stop_seconds = self.environment.now

    def exchange(self, pushes: list[Push]) -> Story:
        """Push, wait, pull, with all servers at once."""
        if len(pushes) == 1:
            return self.servers[0].exchange(pushes[0])
        return self.all_of([server.exchange(push) for server, push in zip(self.servers, pushes, strict=True)])

    def all_of(self, stories: list[Story]) -> Story:
        """Runs several stories at once."""
        yield self.environment.all_of([self.environment.process(story) for story in stories])


class Server:
    """One server with its rule, its inbox, and the state of each worker's gradient."""

    def __init__(self, story: ServerStory, rank: int, rule: Rule) -> None:
        self.story = story
        self.hosts = story.hosts
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
        self.pushes: list[Push] = []  # all pushes of the run
        self.latest: dict[int, Push] = {}  # by worker
        self.read_versions = [0] * workers  # by worker, the latest
        self.expected: dict[int, Push] = {}  # by worker: the gradient that the server has not decided about
        self.waiting: dict[int, Push] = {}  # by worker: decided, and the worker waits for parameters
        self.pending: list[Push] = []  # gradients for the next update
        self.decided: list[Push] = []  # applied, dropped or cancelled

    # A worker's part.

    def expect(self, worker: int, step: int) -> Push:
        """A worker begins to compute a gradient on the parameters of its latest pull."""
        push = self.expected[worker] = self.latest[worker] = Push(worker, step, self.read_versions[worker])
        self.pushes.append(push)
        return push

    def exchange(self, push: Push) -> Story:
        """Exchanges a gradient for parameters. The promise of the parameters starts when the gradient is ready."""
        # push
        push.ready_seconds = self.environment.now
        push.parameters = self.promise(push.worker)
        if push.worker == self.host:
            self.arrived(push)
        elif not self.fifo:
            self.carry(push).callbacks.append(lambda _: self.arrived(push))
        else:
            if self.eager:
                yield self.environment.timeout(self.hosts.route(push.worker, self.host)[1])
            self.deliver(push)
        # wait, pull
        yield from self.pull(push)

    def pull(self, push: Push) -> Story:
        """Waits until the parameters arrive. Newer parameters may replace parameters that are on their way."""
        while True:
            try:
                yield push.parameters
                break
            except simpy.Interrupt:
                continue
        push.pulled_seconds = self.environment.now
        push.gradient = None
        del push.parameters
        self.read_versions[push.worker] = push.answered_version

    # The server's part.

    def serve(self) -> Story:
        """Serves until the last update is made."""
        while not self.over:
            # receive
            push: Push = self.next_in_line() or (yield self.next_push())
            if push.cancelled:
                continue
            if self.fifo and push.worker != self.host:
                yield self.carry(push)
                push.arrived_seconds = push.asked_seconds = self.environment.now
            # decide
            decision = self.rule.arrived(push.worker, push.step, push.read_version)
            del self.expected[push.worker]
            self.waiting[push.worker] = push
            (self.pending if decision.applied else self.decided).append(push)
            # apply
            if decision.version is not None:
                if self.story.apply_seconds > 0.0:
                    yield from self.work()
                self.apply(decision.version, push)
            # answer
            for worker, version in decision.answers:
                self.answer(worker, version, push)

    def next_in_line(self) -> Push | None:
        """The next gradient of a queue, where gradients wait to be received one after the other."""
        return self.inbox.popleft() if self.fifo and self.inbox and self.inbox[0].worker != self.host else None

    def next_push(self) -> simpy.Event:
        """An event that happens with the next gradient that the server knows of and has not taken yet."""
        event = self.environment.event()
        if self.inbox:
            event.succeed(self.inbox.popleft())
        else:
            self.listening = event
        return event

    def deliver(self, push: Push) -> None:
        """The server knows of a gradient from now on."""
        if self.listening:
            self.listening.succeed(push)
            self.listening = None
        else:
            self.inbox.append(push)

    def carry(self, push: Push) -> Flow:
        """The transfer of a gradient. A fifo server pays the latency for each gradient where sends are rendezvous."""
        latency = 0.0 if self.fifo and self.eager else None
        push.gradient = self.hosts.send(push.worker, self.host, self.story.bytes, latency)
        push.began_seconds = self.environment.now
        return push.gradient

    def arrived(self, push: Push) -> None:
        """A gradient has arrived without a queue."""
        push.arrived_seconds = push.asked_seconds = self.environment.now
        self.deliver(push)

    def work(self) -> Story:
        """The server's own work for an update."""
        start = self.environment.now
        yield self.environment.timeout(self.story.apply_seconds)
        self.builder.span(self.rank, SpanKind.APPLY, self.version, start, self.environment.now)

    def apply(self, version: int, about: Push) -> None:
        """The pending gradients become a new version of the parameters."""
        if version != self.version + 1:
            raise wrong_version(about.worker, about.step, version, self.version)
        for push in self.pending:
            push.version = version
        self.decided += self.pending
        self.pending = []
        self.builder.update(version, self.environment.now, self.rank)
        self.version = version
        self.over = version == self.last_version
        self.story.going_on -= self.over
        if not self.story.going_on:
            self.story.end_seconds = self.environment.now

    def answer(self, worker: int, version: int, about: Push) -> None:
        """Parameters leave for a worker. If the worker is not waiting for parameters, its current work is cancelled."""
        if version != self.version:
            raise wrong_answer(about.worker, about.step, worker, version, self.version)
        push = self.waiting.pop(worker, None)
        if push is None:
            if not getattr(self.rule, "cancel", False):
                raise unasked_answer(about.worker, about.step, worker)
            push = self.latest[worker]
            self.cancel(push)
        push.answered_version, push.answered_seconds = version, self.environment.now
        if isinstance(push.parameters, Flow):
            self.hosts.network.start(push.parameters)
        else:
            push.parameters.succeed()

    def cancel(self, push: Push) -> None:
        """Cancels the gradient that a worker is computing or sending, or the parameters that it is receiving."""
        now = self.environment.now
        if self.expected.pop(push.worker, None):
            push.cancelled, push.asked_seconds = True, now
            if push.gradient and not push.gradient.triggered:
                self.hosts.network.abort(push.gradient)
                self.builder.span(push.worker, SpanKind.SEND, push.step, push.ready_seconds, now, label="cancelled")
            self.decided.append(push)
        else:
            assert isinstance(push.parameters, Flow)
            self.hosts.network.abort(push.parameters)
        push.parameters = self.promise(push.worker)
        self.story.processes[push.worker].interrupt()

    def promise(self, worker: int) -> simpy.Event:
        """Parameters that have not left yet, as an event that happens when they arrive."""
        if worker == self.host:
            return self.environment.event()
        return self.hosts.flow(self.host, worker, self.story.bytes)

    def tell(self) -> None:
        """Writes the rows of all exchanges with this server."""
        pushes = [push for push in self.pushes if push.began_before(self.story.end_seconds)]
        write_exchanges(self.builder, pushes, self.rank, self.host, self.story.bytes)
        write_contributions(self.builder, self.decided, self.rank)

    def check_over(self) -> None:
        """Raises InputError where workers wait for an answer that the rule never gave."""
        if not self.over and self.waiting:
            push = next(iter(self.waiting.values()))
            raise no_answer(push.worker, push.step, self.version, self.last_version)
