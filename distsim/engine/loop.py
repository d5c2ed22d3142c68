"""The fast engine for every rule with one server: the story's meaning in one event loop, without processes.

Three things can happen next: parameters are with their workers, gradients are with the server, an update is applied.
What follows is worked out at once, down to which transfers begin when; the links tell when those are done. In one
instant things happen in the order in which they stand below, and to workers in the order of the events that led them
there: as in the story.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence

import numpy as np

from distsim.engine.links import NEVER, Link, Turns, shared_link
from distsim.engine.steps import Steps, steps_trace
from distsim.errors import InputError
from distsim.network import OVER
from distsim.policies import FlexRR, Rule, WithServer
from distsim.policies.nonsense import no_answer, unasked_answer, wrong_answer, wrong_version
from distsim.scenario import Scenario
from distsim.trace import NO_VERSION, Trace

ROOM = array("d", [np.nan]) * 4096  # for what steps will come to


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
    policy, latency = scenario.policy, scenario.cluster.latency_seconds
    assert isinstance(policy, WithServer)
    workers = range(scenario.cluster.workers)
    by_version, seconds, decide = policy.has_global_step, scenario.compute_times(), rule.arrived
    last_step = scenario.steps if getattr(policy, "stop", "total") == "per_worker" else -1
    last_version = policy.updates(scenario.steps, len(workers))
    rendezvous = scenario.receive == "fifo" and scenario.communication.sends == "rendezvous"
    push_latency = 0.0 if rendezvous else latency  # until the server knows of a push
    down, up = links(scenario)
    turns = down if isinstance(down, Turns) else None

    # By step, in the order in which they begin.
    whose, number, read = array("i"), array("q"), array("q")
    start, ready, began, arrived, outcome, answered, pulled = (array("d") for _ in range(7))
    cut: dict[int, float] = {}
    # By worker: the step that it is at, how many it has begun, the version that it was sent.
    at, made, sent = [0] * len(workers), [0] * len(workers), [0] * len(workers)
    alone = [(worker,) for worker in workers]
    # Of the server.
    inbox: deque[int] = deque()  # gradients that are here
    waiting: dict[int, int] = {}  # by worker: the gradient that is decided about, but not answered
    updates = array("d")
    version, answers, over, applied_next = 0, 0, False, NEVER

    now, soon = 0.0, 0.0
    free: Sequence[int] = workers
    while now < NEVER:
        # pull
        for worker in free:
            count = made[worker]
            if count:
                pulled[at[worker]] = now
            if over or count == last_step:
                continue
            # compute, push
            at[worker], made[worker], based_on = len(whose), count + 1, sent[worker]
            done = now + seconds(worker, based_on if by_version else count)
            down.join(done + push_latency, len(whose), alone[worker])
            if len(whose) == len(arrived):
                for column in (began, arrived, outcome, answered, pulled):
                    column.extend(ROOM)
            whose.append(worker)
            number.append(count)
            read.append(based_on)
            start.append(now)
            ready.append(done)
        # receive
        if down.next_end <= soon:
            for worker in down.end(now):
                step = at[worker]
                arrived[step] = now
                if turns:
                    began[step] = turns.began
                inbox.append(step)
        while (inbox and applied_next == NEVER and up.next_end > now and not over) or applied_next <= soon:
            if applied_next == NEVER:
                # decide
                step = inbox.popleft()
                if step in cut:
                    continue
                worker = whose[step]
                decision = decide(worker, number[step], read[step])
                waiting[worker] = step
                outcome[step] = version + 1 if decision.applied else NO_VERSION
                if decision.version is not None:
                    if decision.version != version + 1:
                        raise wrong_version(whose[step], number[step], decision.version, version)
                    if apply_seconds > 0.0:
                        applied_next = now + apply_seconds
                        if turns:
                            turns.wait(NEVER)
                        continue
            else:
                applied_next = NEVER
                if turns:
                    turns.wait(now)
            # apply
            if decision.version is not None:
                version += 1
                updates.append(now)
                if version == last_version:
                    over = True
                    down.leave(now, workers if turns else computing(ready, at, now))  # who send no more
            # answer
            answered_now, gone = [], []
            for worker, of in decision.answers:
                if of != version:
                    raise wrong_answer(whose[step], number[step], worker, of, version)
                its = waiting.pop(worker, None)
                if its is None:
                    # cancel: a gradient that is computed or sent, or older parameters on their way
                    if not getattr(rule, "cancel", False):
                        raise unasked_answer(whose[step], number[step], worker)
                    its = at[worker]
                    gone.append(worker)
                    if outcome[its] != outcome[its]:
                        cut.setdefault(its, now)
                answered[its] = now
                sent[worker] = version
                answered_now.append(worker)
            if gone:
                down.leave(now, gone)
                up.leave(now, gone)
            if answered_now:
                answers += 1
                up.join(now + latency, answers, answered_now)

        now = up.next_end if up.next_end < down.next_end else down.next_end
        if applied_next < now:
            now = applied_next
        soon = now + OVER * now
        free = up.end(now) if up.next_end <= soon < NEVER else ()

    if not over and waiting:
        step = next(iter(waiting.values()))
        raise no_answer(whose[step], number[step], version, last_version)
    rows = len(whose)
    cuts = np.full(rows, np.nan)
    cuts[list(cut)] = list(cut.values())
    if not turns:
        began = ready
    return Steps(
        worker=np.frombuffer(whose, np.int32),
        step=np.frombuffer(number, np.int64),
        read_version=np.frombuffer(read, np.int64),
        start=np.frombuffer(start),
        ready=np.frombuffer(ready),
        began=np.frombuffer(began, count=rows),
        arrived=np.frombuffer(arrived, count=rows),
        outcome=np.frombuffer(outcome, count=rows),
        answered=np.frombuffer(answered, count=rows),
        pulled=np.frombuffer(pulled, count=rows),
        cut=cuts,
        updates=np.array(updates),
    )


def computing(ready: array[float], at: Sequence[int], now: float) -> list[int]:
    """The workers whose gradients are not ready. Apart, because what a nested scope sees is slower to reach."""
    return [worker for worker, step in enumerate(at) if ready[step] > now]


def links(scenario: Scenario) -> tuple[Link, Link]:
    """The server's down-link, which gradients take, and its up-link, which answers take."""
    cluster, num_bytes = scenario.cluster, scenario.gradient_bytes
    ups, downs = ([way(worker) for worker in range(cluster.workers)] for way in (cluster.up, cluster.down))
    to_server, from_server = cluster.down(cluster.workers), cluster.up(cluster.workers)
    answers = shared_link(from_server, downs, num_bytes)
    if scenario.receive == "concurrent":
        return shared_link(to_server, ups, num_bytes), answers
    turn = 0.0 if scenario.communication.sends == "eager" else cluster.latency_seconds
    return Turns([turn + num_bytes / min(up, to_server) for up in ups]), answers
