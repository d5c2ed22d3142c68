"""The fast engine for every rule with one server: the story's meaning in one event loop, without processes.

Three things can happen next: parameters are with their workers, gradients are with the server, an update is applied.
What follows is worked out at once, and tells the links which transfers begin when. At one instant things happen in that
order, and to workers in the order of the events that led them there: as in the story.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable
from heapq import heappush

import numpy as np

from distsim.engine.links import NEVER, Link, Turns, shared_link
from distsim.engine.server import Push, nonsense
from distsim.engine.steps import UNDECIDED, Steps, steps_trace
from distsim.errors import InputError
from distsim.network import OVER
from distsim.policies import FlexRR, Rule, WithServer
from distsim.scenario import Scenario
from distsim.trace import NO_VERSION, Trace

MORE = 4096  # steps for which there is room at first


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
    steps = played(scenario, rule or scenario.policy.rule(scenario.cluster.workers), apply_seconds)
    return steps_trace(scenario, "loop", steps, apply_seconds)


def played(scenario: Scenario, rule: Rule, apply_seconds: float) -> Steps:
    """All that happens. One function over flat arrays, because a million steps shall take a few seconds."""
    policy, workers, latency = scenario.policy, scenario.cluster.workers, scenario.cluster.latency_seconds
    assert isinstance(policy, WithServer)
    by_version, times, decide = policy.has_global_step, scenario.compute_times(), rule.arrived
    last_step = scenario.steps if getattr(policy, "stop", "total") == "per_worker" else -1
    last_version = policy.updates(scenario.steps, workers)
    fifo, eager = scenario.receive == "fifo", scenario.communication.sends == "eager"
    push_latency = 0.0 if fifo and not eager else latency  # until the server knows of a push
    up, down = links(scenario)
    up_end, down_end, answers_coming, pushes_coming = up.end, down.end, up.coming, down.coming
    up_next = down_next = NEVER  # when to ask them

    # By step, in the order in which steps begin.
    whose, number, read = array("i"), array("q"), array("q")
    start, ready, began, arrived, answered, pulled = (array("d") for _ in range(6))
    outcome = array("q")
    cut: dict[int, float] = {}
    begun = room = 0
    # By worker.
    drawn: list[list[float]] = [[] for _ in range(workers)]
    at = [-1] * workers  # the step that it is at
    made = [-1] * workers  # that step's number
    sent = [0] * workers  # the version that it was answered with last
    waits = [False] * workers  # its gradient is decided about, but not answered
    # Of the server.
    inbox: deque[int] = deque()
    applying: tuple[int, int, tuple[tuple[int, int], ...]] | None = None
    applied_next = NEVER
    version, answers_sent, over = 0, 0, False
    updates = array("d")

    now = soon = 0.0
    free: Iterable[int] = range(workers)
    while True:
        # pull
        for worker in free:
            if made[worker] >= 0:
                pulled[at[worker]] = now
            made[worker] += 1
            step = made[worker]
            if over or step == last_step:
                continue
            # compute
            if begun == room:
                ...
