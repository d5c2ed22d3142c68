"""Training with one server, all steps at once: where a step waits for all, or cancels who is late.

Every step begins anew at the update before it. A fifo server takes sorted gradients one after the other; a concurrent
one shares its link equally, which is a merge of the sorted arrivals with the departures, step by step of the merge and
for all steps of the run at once.
"""

from __future__ import annotations

import math

import numpy as np

from distsim.engine import loop
from distsim.engine.links import shared_link
from distsim.engine.recurrence.drawn import Floats, drawn_seconds
from distsim.engine.steps import Steps, steps_trace
from distsim.policies import Backup
from distsim.scenario import Scenario
from distsim.trace import Trace


def cannot(scenario: Scenario) -> str | None:
    """What of `scenario`, which waits for all or cancels, has no recurrence here; None where there is one."""
    missing = loop.cannot(scenario)
    if missing is not None:
        return missing
    cluster = scenario.cluster
    workers = range(cluster.workers)
    if scenario.receive == "concurrent" and len({cluster.up(worker) for worker in workers}) > 1:
        return 'cluster.nic with different up-links and receive = "concurrent"'
    if isinstance(scenario.policy, Backup) and len({cluster.down(worker) for worker in workers}) > 1:
        return "cluster.nic with different down-links and cancel = true"
    return None


def run(scenario: Scenario, apply_seconds: float) -> Trace:
    """Works `scenario` out. apply_seconds: the server's own work for each update."""
    cluster, steps, workers = scenario.cluster, scenario.steps, scenario.cluster.workers
    needed = workers - (scenario.policy.backups if isinstance(scenario.policy, Backup) else 0)
    latency = cluster.latency_seconds
    pull = latency + _pull_seconds(scenario)  # by worker, from the moment at which all answers leave
    # Times of a step count from the answers before it.
    ready = drawn_seconds(scenario)
    ready[1:] += pull
    if scenario.receive == "fifo":
        began, arrived = _fifo(scenario, ready)
    else:
        began, arrived = ready, _concurrent(scenario, ready + latency)
    update = np.partition(arrived, needed - 1, axis=1)[:, needed - 1]
    answers = np.cumsum(update + apply_seconds)
    zero = np.concatenate([[0.0], answers[:-1]])[:, None]
    started = np.where(np.arange(steps)[:, None] > 0, pull, 0.0) + zero
    order = np.argsort(np.argsort(arrived, axis=1, kind="stable"), axis=1)  # ties by rank
    applied = order < needed
    # Before the server has answered, and cancelled, further gradients may have come.
    received = applied if scenario.receive == "fifo" else applied | (arrived <= (update + apply_seconds)[:, None])
    step = np.repeat(np.arange(steps), workers)
    ready += zero
    columns = Steps(
        worker=np.tile(np.arange(workers, dtype=np.int32), steps),
        step=step,
        read_version=step,
        start=started.ravel(),
        ready=ready.ravel(),
        began=(began + zero).ravel() if scenario.receive == "fifo" else ready.ravel(),
        arrived=np.where(received, arrived + zero, math.nan).ravel(),
        outcome=np.where(applied.ravel(), step + 1.0, math.nan),
        answered=np.repeat(answers, workers),
        pulled=(answers[:, None] + pull).ravel(),
        cut=np.where(applied, math.nan, answers[:, None]).ravel(),
        updates=answers,
    )
    return steps_trace(scenario, "recurrence", columns, apply_seconds)


def _pull_seconds(scenario: Scenario) -> Floats:
    """How long each worker's answer takes when all leave at once, without the latency; shape (workers,)."""
    cluster = scenario.cluster
    workers = range(cluster.workers)
    link = shared_link(
        cluster.up(cluster.workers), [cluster.down(worker) for worker in workers], scenario.gradient_bytes
    )
    link.join(0.0, 0, workers)
    seconds = np.zeros(cluster.workers)
    while link.next_end < math.inf:
        now = link.next_end
        seconds[link.end(now)] = now
    return seconds


def _fifo(scenario: Scenario, ready: Floats) -> tuple[Floats, Floats]:
    """When the server turns to each gradient, and when it has it: one after the other, in order of arrival."""
    cluster, latency = scenario.cluster, scenario.cluster.latency_seconds
    eager = scenario.communication.sends == "eager"
    ups = np.array([cluster.up(worker) for worker in range(cluster.workers)])
    turn = scenario.gradient_bytes / np.minimum(ups, cluster.down(cluster.workers)) + (0.0 if eager else latency)
    asked = ready + latency if eager else ready
    order = np.argsort(asked, axis=1, kind="stable")
    asked, turns = np.take_along_axis(asked, order, axis=1), turn[order]
    began, ended = np.empty_like(asked), np.zeros(len(asked))
    for place in range(cluster.workers):
        began[:, place] = np.maximum(asked[:, place], ended)
        ended = began[:, place] + turns[:, place]
    back = np.argsort(order, axis=1)
    return np.take_along_axis(began, back, axis=1), np.take_along_axis(began + turns, back, axis=1)


def _concurrent(scenario: Scenario, joined: Floats) -> Floats:
    """When each gradient is there: all under way have equal shares of the server's link, up to their own speed.

    Equal sizes leave in order of joining, so each step is a merge of two sorted lists; `virtual` counts the bytes that
    each transfer under way has received.
    """
    cluster, num_bytes = scenario.cluster, scenario.gradient_bytes
    capacity, limit = cluster.down(cluster.workers), cluster.up(0)
    steps, workers = joined.shape
    order = np.argsort(joined, axis=1, kind="stable")
    sorted_joined = np.take_along_axis(joined, order, axis=1)
    # Flat arrays of one more place per step, in which nobody joins.
    joins = np.concatenate([sorted_joined, np.full((steps, 1), math.inf)], axis=1).ravel()
    goals, ends = np.full(joins.shape, math.inf), np.empty(joins.shape)
    first = np.arange(steps) * (workers + 1)
    joining, ending = first.copy(), first.copy()
    virtual, now = np.zeros(steps), np.zeros(steps)
    shares = np.minimum(limit, capacity / np.maximum(np.arange(workers + 1), 1))  # by number under way
    for _ in range(2 * workers):
        rate = shares[joining - ending]
        next_join, goal = joins[joining], goals[ending]
        next_end = now + (goal - virtual) / rate
        joins_now = next_join <= next_end
        ends_now = ~joins_now
        virtual = np.where(joins_now, virtual + (next_join - now) * rate, goal)
        now = np.where(joins_now, next_join, next_end)
        goals[joining[joins_now]] = virtual[joins_now] + num_bytes
        ends[ending[ends_now]] = now[ends_now]
        joining += joins_now
        ending += ends_now
    found = np.empty_like(joined)
    np.put_along_axis(found, order, ends.reshape(steps, workers + 1)[:, :-1], axis=1)
    return found
