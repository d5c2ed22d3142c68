"""The fast engine for every rule of a server. It gives the story's times from one event loop, without processes.

There are three events: parameters arrive at workers, gradients arrive at the server, an update is applied. At each
event the loop computes all consequences at once, including the transfers that start. The links tell when transfers
finish. Events of one instant happen in the order of the code below, and for workers in the order of their causes, as
in the story.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Sequence

from distsim.engine.shared_link import NEVER, QueuedLink, ServerLink, shared_link
from distsim.engine.step_log import (
    ANSWERED,
    ARRIVED,
    BEGAN,
    CUT,
    MANY,
    NAN,
    OUTCOME,
    PULLED,
    READ_VERSION,
    READY,
    START,
    STEP,
    WORKER,
    Row,
    StepLog,
)
from distsim.engine.steps import Steps, steps_trace
from distsim.errors import InputError
from distsim.network import OVER
from distsim.policies import FlexRR, Rule, WithServer
from distsim.policies.rule_errors import no_answer, unasked_answer, wrong_answer, wrong_version
from distsim.scenario import Scenario
from distsim.trace import NO_VERSION, Trace


def cannot(scenario: Scenario, *, own_rule: bool = False) -> str | None:
    """The part of `scenario`, with or without a user's own rule, that the loop cannot serve, or None."""
    if not scenario.server_decides or isinstance(scenario.policy, FlexRR):
        return f"policy.kind = {scenario.policy.kind!r} with communication.kind = {scenario.communication.kind!r}"
    if own_rule and len(scenario.servers) > 1:
        return "a rule of your own with several servers"  # each server asks its own copy, which may decide otherwise
    if scenario.communication.colocated:
        return "communication.colocated = true"
    if scenario.cluster.nodes is not None:
        return "cluster.nodes"
    return None


def run(scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Simulates `scenario`. apply_seconds: the server's own work for each update. rule: replaces the policy's rule."""
    missing = cannot(scenario, own_rule=rule is not None)
    if missing is not None:
        raise InputError.of("engine", "loop", f"cannot serve {missing}", 'take engine = "story"')
    assert isinstance(scenario.policy, WithServer)
    steps = played(scenario, rule or scenario.policy.rule(scenario.cluster.workers), apply_seconds)
    return steps_trace(scenario, "loop", [steps] * len(scenario.servers), apply_seconds)


def played(scenario: Scenario, rule: Rule, apply_seconds: float) -> Steps:
    """Simulates the whole run. It is one function over lists, because a million steps must take only a few seconds."""
    policy, latency = scenario.policy, scenario.cluster.latency_seconds
    assert isinstance(policy, WithServer)
    workers = range(scenario.cluster.workers)
    by_version, decide = policy.has_global_step, rule.arrived
    last_step = scenario.steps if getattr(policy, "stop", "total") == "per_worker" else sys.maxsize
    last_version = policy.updates(scenario.steps, len(workers))
    rendezvous = scenario.receive == "fifo" and scenario.communication.sends == "rendezvous"
    push_latency = 0.0 if rendezvous else latency  # until the server knows of a push
    down, up = links(scenario)
    push, queued = down.join, down if isinstance(down, QueuedLink) else None

    # By worker: the current step, the version that was sent to the worker, and the seconds of each step.
    at: list[Row] = [[] for _ in workers]
    sent = [0] * len(workers)
    times = scenario.simulated_times()
    seconds = [times.first(worker, scenario.steps).tolist() for worker in workers]
    alone = [(worker,) for worker in workers]
    # The server's state.
    inbox: deque[Row] = deque()  # gradients that have arrived
    waiting: dict[int, Row] = {}  # by worker: the gradient that the server has decided about, but not answered
    taking = True  # whether the server reads its inbox: not during an update, nor after the last update
    version, applied_next = 0, NEVER
    updates: list[float] = []

    log = StepLog(expected=(scenario.steps + 1) * len(workers))
    numbers = log.numbers
    now, soon = 0.0, 0.0
    free: Sequence[int] = workers
    while now < NEVER:
        # pull
        for worker in free:
            step = at[worker]
            count = 0
            if step:
                step[PULLED] = now
                count = step[STEP] + 1
            if count >= last_step:
                continue
            numbers += step
            # compute, push
            based_on = sent[worker]
            index = based_on if by_version else count
            try:
                done = now + seconds[worker][index]
            except IndexError:
                seconds[worker] = times.first(worker, index + 1).tolist()
                done = now + seconds[worker][index]
            at[worker] = [worker, count, based_on, now, done, done, NAN, NAN, NAN, NAN, NAN]
            push(done + push_latency, alone[worker])
        # receive
        if down.next_end <= soon:
            for worker in down.end(now):
                step = at[worker]
                step[ARRIVED] = now
                if queued:
                    step[BEGAN] = queued.began
                inbox.append(step)
        while True:
            if applied_next <= soon:
                # The server decides nothing while it applies, so `asked` and `decision` still belong to this update.
                applied_next, taking = NEVER, True
                if queued:
                    queued.wait(now)
            elif inbox and taking and up.next_end > now:
                # decide
                asked = inbox.popleft()
                worker = asked[WORKER]
                decision = decide(worker, asked[STEP], asked[READ_VERSION])
                waiting[worker] = asked
                asked[OUTCOME] = version + 1 if decision.applied else NO_VERSION
                if decision.version is not None:
                    if decision.version != version + 1:
                        raise wrong_version(worker, asked[STEP], decision.version, version)
                    if apply_seconds > 0.0:
                        applied_next, taking = now + apply_seconds, False
                        if queued:
                            queued.wait(NEVER)
                        continue
            else:
                break
            # apply
            if decision.version is not None:
                version += 1
                updates.append(now)
                if version == last_version:
                    taking, last_step = False, 0  # no worker begins another step
                    down.leave(now, workers if queued else computing(at, now))  # the workers that send nothing more
                if len(numbers) >= MANY:
                    log.pack()
            # answer
            answered: list[int] = []
            cancelled: list[int] = []
            for worker, of in decision.answers:
                if of != version:
                    raise wrong_answer(asked[WORKER], asked[STEP], worker, of, version)
                its = waiting.pop(worker, None)
                if its is None:
                    if not getattr(rule, "cancel", False):
                        raise unasked_answer(asked[WORKER], asked[STEP], worker)
                    its = at[worker]
                    cancel(its, inbox, now)
                    cancelled.append(worker)
                    if worker in answered:  # in this decision
                        answered.remove(worker)
                its[ANSWERED] = now
                sent[worker] = version
                answered.append(worker)
            if cancelled:
                down.leave(now, cancelled)
                up.leave(now, cancelled)
            if answered:
                up.join(now + latency, answered)

        now, next_push = up.next_end, down.next_end
        if next_push < now:
            now = next_push
        if applied_next < now:
            now = applied_next
        soon = now + OVER * now
        free = up.end(now) if up.next_end <= soon and now < NEVER else ()

    if version < last_version and waiting:
        step = next(iter(waiting.values()))
        raise no_answer(step[WORKER], step[STEP], version, last_version)
    if version == last_version:
        at = [step for step in at if began_before(step, updates[-1])]
    return log.steps(at, updates)


def computing(at: Sequence[Row], now: float) -> list[int]:
    """The workers whose gradients are not ready. This is a function, because variables of a nested scope are slower."""
    return [worker for worker, step in enumerate(at) if step[READY] > now]


def began_before(step: Row, end: float) -> bool:
    """Whether a step began before the run's last update. A step of that same instant counts if a server knew."""
    return step[START] < end * (1 - OVER) or not (math.isnan(step[ARRIVED]) and math.isnan(step[CUT]))


def cancel(step: Row, inbox: deque[Row], now: float) -> None:
    """Cancels this gradient. If the server has decided about the gradient, older parameters are on their way."""
    if math.isnan(step[OUTCOME]) and math.isnan(step[CUT]):
        step[CUT] = now
        if step in inbox:
            inbox.remove(step)


def links(scenario: Scenario) -> tuple[ServerLink, ServerLink]:
    """A server's down-link, which carries gradients, and its up-link, which carries answers."""
    cluster, servers = scenario.cluster, len(scenario.servers)
    num_bytes = scenario.gradient_bytes / servers
    ups, downs = ([way(worker) / servers for worker in range(cluster.workers)] for way in (cluster.up, cluster.down))
    to_server, from_server = cluster.down(cluster.workers), cluster.up(cluster.workers)
    answers = shared_link(from_server, downs, num_bytes)
    if scenario.receive == "concurrent":
        return shared_link(to_server, ups, num_bytes), answers
    before = 0.0 if scenario.communication.sends == "eager" else cluster.latency_seconds
    return QueuedLink([before + num_bytes / min(up, to_server) for up in ups]), answers
