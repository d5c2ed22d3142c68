"""The fast engine for every rule with one server: the story's meaning in one event loop, without processes.

Five things can happen next: a worker has its parameters and begins a step, a gradient starts on its way, a gradient
has arrived, an answer starts on its way, the server has done its own work. Each has its queue; the earliest is taken.
At one instant they come in that order, and workers in the order of the events that led them there: as in the story.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from distsim.engine.exchange import Push
from distsim.engine.links import shared_link
from distsim.engine.server import nonsense
from distsim.engine.steps import (
    ANSWERED,
    ARRIVED,
    BEGAN,
    CUT,
    OUTCOME,
    PULLED,
    READ_VERSION,
    READY,
    STEP,
    WORKER,
    steps_trace,
)  # fmt: skip
from distsim.errors import InputError
from distsim.network import OVER
from distsim.policies import Decision, FlexRR, Rule, WithServer
from distsim.scenario import Scenario
from distsim.trace import NO_VERSION, Trace

Row = list[Any]  # whole numbers and seconds, in the order of `steps`

NEVER = math.inf
NOT = math.nan  # has not happened


def cannot(scenario: Scenario) -> str | None:
    """What of `scenario` the loop cannot serve; None where it can serve all of it."""
    if not scenario.servers or not isinstance(scenario.policy, WithServer) or isinstance(scenario.policy, FlexRR):
        return f"policy.kind = {scenario.policy.kind!r} with communication.kind = {scenario.communication.kind!r}"
    if len(scenario.servers) > 1:
        return f"communication.servers = {len(scenario.servers)}"
    if scenario.communication.colocated:
        return "communication.colocated = true"
    if scenario.cluster.nodes is not None:
        return "cluster.nodes"
    return None


def run(scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Simulates `scenario`. apply_seconds: the server's own work for each update. rule: in place of the policy's."""
    missing = cannot(scenario)
    if missing is not None:
        raise InputError.of("engine", "loop", f"cannot serve {missing}", 'take engine = "story"')
    assert isinstance(scenario.policy, WithServer)
    return ServerLoop(scenario, rule or scenario.policy.rule(scenario.cluster.workers), apply_seconds).run()


class ServerLoop:
    """One server and its workers. A worker's step is one row, filled in as things happen and then written."""

    def __init__(self, scenario: Scenario, rule: Rule, apply_seconds: float) -> None:
        assert isinstance(scenario.policy, WithServer)
        cluster, policy = scenario.cluster, scenario.policy
        self.scenario = scenario
        self.rule = rule
        self.apply_seconds = apply_seconds
        self.workers = cluster.workers
        self.bytes = scenario.gradient_bytes
        self.latency = cluster.latency_seconds
        self.fifo = scenario.receive == "fifo"
        self.eager = scenario.communication.sends == "eager"
        self.push_latency = 0.0 if self.fifo and not self.eager else self.latency  # until the server knows of it
        self.by_version = policy.has_global_step
        self.last_step = scenario.steps if getattr(policy, "stop", "total") == "per_worker" else -1
        self.last_version = policy.updates(scenario.steps, self.workers)
        ups, downs = ([way(worker) for worker in range(self.workers)] for way in (cluster.up, cluster.down))
        self.down_link = shared_link(cluster.down(self.workers), ups, self.bytes)
        self.up_link = shared_link(cluster.up(self.workers), downs, self.bytes)
        self.turn_seconds = [self.bytes / min(up, cluster.down(self.workers)) for up in ups]
        self.times = scenario.compute_times()
        self.drawn: list[list[float]] = [[] for _ in range(self.workers)]
        self.pushes: list[tuple[float, int, Row]] = []  # gradients to come: (seconds, number, row)
        self.begun = 0
        self.inbox: deque[Row] = deque()
        self.answers: deque[tuple[float, list[int]]] = deque()  # answers that wait the latency: (seconds, workers)
        self.rows: list[Row | None] = [None] * self.workers
        self.expected = [False] * self.workers  # computing or sending: undecided
        self.waiting: dict[int, Row] = {}  # decided, not answered
        self.sent_version = [0] * self.workers
        self.busy_until = NEVER  # the end of what the server does: receiving in turn, or applying
        self.deciding: tuple[Row, Decision | None] | None = None
        self.version = 0
        self.over = False
        self.written = array("d")
        self.updates = array("d")

    def run(self) -> Trace:
        """Runs until nothing is left to happen."""
        pushes, inbox, answers, up, down = self.pushes, self.inbox, self.answers, self.up_link, self.down_link
        for worker in range(self.workers):
            self.begin(0.0, worker, 0, 0)
        while True:
            now = up.next_end
            if pushes and pushes[0][0] < now:
                now = pushes[0][0]
            if down.next_end < now:
                now = down.next_end
            if answers and answers[0][0] < now:
                now = answers[0][0]
            if self.busy_until < now:
                now = self.busy_until
            if now == NEVER:
                break
            soon = now + OVER * now
            # pull, and compute
            if up.next_end <= soon:
                for worker in up.end(now):
                    self.pulled(now, worker)
            # push
            while pushes and pushes[0][0] <= now:
                row = heappop(pushes)[2]
                if row[CUT] == row[CUT]:
                    continue
                if self.fifo:
                    inbox.append(row)
                else:
                    down.join(now, (row[WORKER],))
            # answer
            while answers and answers[0][0] <= now:
                up.join(now, answers.popleft()[1])
                if up.next_end <= now:
                    self.pull_nothing(now)
            # receive
            if down.next_end <= soon:
                for worker in down.end(now):
                    arrived = self.rows[worker]
                    assert arrived is not None
                    arrived[ARRIVED] = now
                    inbox.append(arrived)
            # decide, apply
            if self.busy_until <= soon:
                self.go_on(now)
            while inbox and self.busy_until == NEVER and not self.over:
                row = inbox.popleft()
                if row[CUT] == row[CUT]:
                    continue
                if self.fifo:
                    self.turn_to(now, row)
                else:
                    self.decide(now, row)
                if up.next_end <= now:
                    self.pull_nothing(now)
        self.check_over()
        for unfinished in self.rows:
            if unfinished is not None:
                self.written.extend(unfinished)
        return steps_trace(
            self.scenario,
            "loop",
            np.frombuffer(self.written, dtype=np.float64).reshape(-1, CUT + 1),
            np.frombuffer(self.updates, dtype=np.float64),
            self.apply_seconds,
        )

    # What a worker does.

    def begin(self, now: float, worker: int, step: int, version: int) -> None:
        """A step begins: its gradient is on its way when it is computed."""
        index = version if self.by_version else step
        drawn = self.drawn[worker]
        if index >= len(drawn):
            drawn = self.drawn[worker] = self.times.first(worker, index + 1).tolist()
        ready = now + drawn[index]
        row = [worker, step, version, now, ready, ready, NOT, NOT, NOT, NO_VERSION - 1, NOT]
        self.rows[worker] = row
        self.expected[worker] = True
        self.begun += 1
        heappush(self.pushes, (ready + self.push_latency, self.begun, row))

    def pulled(self, now: float, worker: int) -> None:
        """The parameters are here: the step is written, and the next begins."""
        row = self.rows[worker]
        assert row is not None
        row[PULLED] = now
        self.written.extend(row)
        self.rows[worker] = None
        step = row[STEP] + 1
        if not self.over and step != self.last_step:
            self.begin(now, worker, step, self.sent_version[worker])

    def pull_nothing(self, now: float) -> None:
        """Parameters of no bytes are here in the instant in which they start on their way."""
        for worker in self.up_link.end(now):
            self.pulled(now, worker)

    # What the server does.

    def turn_to(self, now: float, row: Row) -> None:
        """A fifo server receives one gradient after the other."""
        row[BEGAN] = now
        start = now if self.eager else now + self.latency
        self.busy_until = start + self.turn_seconds[row[WORKER]]
        self.deciding = row, None

    def go_on(self, now: float) -> None:
        """The gradient in turn is here, or the update is applied."""
        assert self.deciding is not None
        (row, decision), self.deciding = self.deciding, None
        self.busy_until = NEVER
        if decision is None:
            row[ARRIVED] = now
            self.decide(now, row)
        else:
            self.update(now, row, decision)

    def decide(self, now: float, row: Row) -> None:
        """The rule is asked about the gradient that is here."""
        worker = row[WORKER]
        decision = self.rule.arrived(worker, row[STEP], row[READ_VERSION])
        self.expected[worker] = False
        self.waiting[worker] = row
        row[OUTCOME] = self.version + 1 if decision.applied else NO_VERSION
        if decision.version is None:
            self.answer(now, row, decision)
            return
        if decision.version != self.version + 1:
            raise nonsense(
                push_of(row), f"made version {decision.version}", f"version {self.version + 1} comes next",
                "count on from it",
            )  # fmt: skip
        if self.apply_seconds > 0.0:
            self.busy_until = now + self.apply_seconds
            self.deciding = row, decision
        else:
            self.update(now, row, decision)

    def update(self, now: float, row: Row, decision: Decision) -> None:
        """A new version of the parameters."""
        self.updates.append(now)
        self.version += 1
        self.over = self.version == self.last_version
        self.answer(now, row, decision)
        if self.over:
            # Whoever still computes sends no more; a fifo server takes no more.
            self.pushes[:] = [] if self.fifo else [push for push in self.pushes if push[2][READY] <= now]
            heapify(self.pushes)

    def answer(self, now: float, row: Row, decision: Decision) -> None:
        """Parameters leave for the workers; who is not waiting for them is cancelled."""
        workers: list[int] = []
        for worker, version in decision.answers:
            if version != self.version:
                raise nonsense(
                    push_of(row), f"answered worker {worker} with version {version}",
                    f"the server holds {self.version}", "answer with that",
                )  # fmt: skip
            answered = self.waiting.pop(worker, None)
            if answered is None:
                if not getattr(self.rule, "cancel", False):
                    raise nonsense(
                        push_of(row), f"answered worker {worker}", "that worker waits for no answer",
                        "answer each gradient once, or give the rule an attribute cancel = True",
                    )  # fmt: skip
                answered = self.cancel(now, worker)
            answered[ANSWERED] = now
            self.sent_version[worker] = version
            workers.append(worker)
        if workers and self.latency > 0.0:
            self.answers.append((now + self.latency, workers))
        elif workers:
            self.up_link.join(now, workers)

    def cancel(self, now: float, worker: int) -> Row:
        """A gradient is no longer wanted, or parameters on their way are replaced by newer ones."""
        row = self.rows[worker]
        assert row is not None
        if self.expected[worker]:
            self.expected[worker] = False
            row[CUT] = now
            if row[READY] <= now and not self.fifo:
                self.down_link.leave(now, worker)
        else:
            for _, workers in self.answers:
                if worker in workers:
                    workers.remove(worker)
            self.up_link.leave(now, worker)
        return row

    def check_over(self) -> None:
        """Raises InputError where everybody waits for an answer that the rule never gave."""
        if not self.over and self.waiting:
            row = next(iter(self.waiting.values()))
            raise nonsense(
                push_of(row), f"made {self.version} of {self.last_version} updates",
                "every worker waits and nothing is on its way", "answer every gradient in the end",
            )  # fmt: skip


def push_of(row: Row) -> Push:
    """The gradient of a row, for messages."""
    return Push(row[WORKER], row[STEP], row[READ_VERSION])
