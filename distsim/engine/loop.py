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

from distsim.engine.links import EqualLink
from distsim.engine.server import Push, nonsense
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
UNDECIDED = NO_VERSION-1
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
        self.down_link = EqualLink(cluster.down(self.workers), ups[0], self.bytes)
        self.up_link = EqualLink(cluster.up(self.workers), downs[0], self.bytes)
        self.times = scenario.compute_times()
        self.drawn: list[list[float]] = [[] for _ in range(self.workers)]
        self.inbox: deque[int] = deque()
        self.rows: list[Row | None] = [None] * self.workers
        self.sent_version = [0] * self.workers
        self.busy_until = NEVER  # the end of what the server does: receiving in turn, or applying
        self.version = 0
        self.over = False
        self.written = array("d")
        self.updates = array("d")

    def run(self) -> Trace:
        """Runs until nothing is left to happen."""
        inbox, up, down, rows = self.inbox, self.up_link, self.down_link, self.rows
        write = self.written.fromlist
        for worker in range(self.workers):
            self.begin(0.0, worker, 0, 0)
        while True:
            now = up.next_end
            if down.next_end < now:
                now = down.next_end
            if self.busy_until < now:
                now = self.busy_until
            if now == NEVER:
                break
            soon = now + OVER * now
            # pull, and compute
            if up.next_end <= soon:
                for worker in up.end(now):
                    row = rows[worker]
                    row[PULLED] = now
                    write(row)
                    rows[worker] = None
                    step = row[STEP] + 1
                    if not self.over and step != self.last_step:
                        self.begin(now, worker, step, self.sent_version[worker])
            # receive
            if down.next_end <= soon:
                for worker in down.end(now):
                    rows[worker][ARRIVED] = now
                    inbox.append(worker)
            # decide, apply
            while inbox and self.busy_until == NEVER and not self.over and up.next_end > now:
                self.decide(now, rows[inbox.popleft()])
        for unfinished in self.rows:
            if unfinished is not None:
                self.written.extend(unfinished)
        return steps_trace(
            self.scenario,
            "loop",
            np.ascontiguousarray(np.frombuffer(self.written, dtype=np.float64).reshape(-1, CUT + 1).T),
            np.frombuffer(self.updates, dtype=np.float64),
            self.apply_seconds,
        )

    def begin(self, now: float, worker: int, step: int, version: int) -> None:
        """A step begins: its gradient is on its way when it is computed."""
        index = version if self.by_version else step
        drawn = self.drawn[worker]
        if index >= len(drawn):
            drawn = self.drawn[worker] = self.times.first(worker, index + 1).tolist()
        ready = now + drawn[index]
        self.rows[worker] = [worker, step, version, now, ready, ready, NOT, NOT, NOT, UNDECIDED, NOT]
        self.down_link.join(ready + self.push_latency, (worker,))

    def decide(self, now: float, row: Row) -> None:
        """The rule is asked about the gradient that is here."""
        decision = self.rule.arrived(row[WORKER], row[STEP], row[READ_VERSION])
        row[OUTCOME] = self.version + 1 if decision.applied else NO_VERSION
        if decision.version is not None:
            self.updates.append(now)
            self.version += 1
            self.over = self.version == self.last_version
        if decision.answers:
            workers = []
            for worker, version in decision.answers:
                answered = self.rows[worker]
                answered[ANSWERED] = now
                self.sent_version[worker] = version
                workers.append(worker)
            self.up_link.join(now + self.latency, workers)
        if self.over:
            for w, row in enumerate(self.rows):
               if row and row[READY]>now: self.down_link.coming=[e for e in self.down_link.coming if e[2][0]!=w]


def push_of(row: Row) -> Push:
    """The gradient of a row, for messages."""
    return Push(row[WORKER], row[STEP], row[READ_VERSION])
