"""Exact recurrences: runs whose times follow from a formula over arrays, all steps at once.

With one server where a step waits for all, or cancels who is late, every step begins anew at the update before it:
synchronous, and backup with `cancel`. A fifo server takes sorted gradients one after the other; a concurrent one shares
its link equally, which is a merge of the sorted arrivals with the departures, step by step of the merge and for all
steps of the run at once. On a ring, ranks only wait for neighbours: with e[i] the time at which rank i has finished
its earlier rounds, the transfer from i to i + 1 takes d[i] from max(e[i], e[i + 1]) on (eager: from e[i] on). That is
linear in the max-plus algebra (Baccelli et al. 1992, Synchronization and Linearity): one matrix serves every step.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from distsim.collectives import ring
from distsim.engine import loop
from distsim.engine.links import shared_link
from distsim.engine.steps import CUT, steps_trace
from distsim.errors import InputError
from distsim.policies import Backup, Rule, Synchronous
from distsim.scenario import Scenario
from distsim.trace import NO_SERVER, NO_VERSION, SpanKind, Trace, TraceBuilder

Floats = NDArray[np.float64]


def cannot(scenario: Scenario) -> str | None:
    """What of `scenario` has no recurrence here; None where there is one."""
    policy, cluster = scenario.policy, scenario.cluster
    if not isinstance(policy, Synchronous) and not (isinstance(policy, Backup) and policy.cancel):
        late = " without cancel" if isinstance(policy, Backup) else ""
        return f"policy.kind = {policy.kind!r}{late}"
    if scenario.communication.kind == "ring":
        return None if cluster.nodes is None else "cluster.nodes"
    missing = loop.cannot(scenario)
    if missing is not None:
        return missing
    workers = range(cluster.workers)
    if scenario.receive == "concurrent" and len({cluster.up(worker) for worker in workers}) > 1:
        return 'cluster.nic with different up-links and receive = "concurrent"'
    if isinstance(policy, Backup) and len({cluster.down(worker) for worker in workers}) > 1:
        return "cluster.nic with different down-links and cancel = true"
    return None


def run(scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Works `scenario` out. apply_seconds: the server's own work for each update. A user's own rule has no formula."""
    missing = "a rule of your own" if rule is not None else cannot(scenario)
    if missing is not None:
        raise InputError.of("engine", "recurrence", f"has no formula for {missing}", 'take engine = "auto"')
    if scenario.communication.kind == "ring":
        return _ring_trace(scenario)
    return _server_trace(scenario, apply_seconds)


# With one server.


def _server_trace(scenario: Scenario, apply_seconds: float) -> Trace:
    cluster, steps, workers = scenario.cluster, scenario.steps, scenario.cluster.workers
    needed = workers - (scenario.policy.backups if isinstance(scenario.policy, Backup) else 0)
    latency = cluster.latency_seconds
    pull = latency + _pull_seconds(scenario)  # by worker, from the moment at which all answers leave
    # Times of a step count from the answers before it.
    ready = _drawn(scenario)
    ready[1:] += pull
    if scenario.receive == "fifo":
        began, arrived = _fifo(scenario, ready)
    else:
        began, arrived = ready, _concurrent(scenario, ready + latency)
    update = np.partition(arrived, needed - 1, axis=1)[:, needed - 1]
    answers = np.cumsum(update + apply_seconds)
    zero = np.concatenate([[0.0], answers[:-1]])[:, None]
    columns = np.empty((steps, workers, CUT + 1))
    step = np.arange(steps)[:, None]
    started = np.where(step > 0, pull, 0.0) + zero
    order = np.argsort(np.argsort(arrived, axis=1, kind="stable"), axis=1)  # ties by rank
    applied = order < needed
    # Before the server has answered, and cancelled, further gradients may have come.
    received = applied if scenario.receive == "fifo" else applied | (arrived <= (update + apply_seconds)[:, None])
    for column, values in enumerate(
        (
            np.arange(workers), step, step, started, ready + zero, began + zero,
            np.where(received, arrived + zero, math.nan),
            np.broadcast_to(answers[:, None], (steps, workers)), answers[:, None] + pull,
            np.where(applied, step + 1, NO_VERSION - 1),
            np.where(applied, math.nan, answers[:, None]),
        )
    ):  # fmt: skip
        columns[:, :, column] = values
    return steps_trace(scenario, "recurrence", columns.reshape(-1, CUT + 1), answers, apply_seconds)


def _drawn(scenario: Scenario) -> Floats:
    """Seconds of each step's work, shape (steps, workers)."""
    times = scenario.compute_times()
    return np.stack(
        [times.first(worker, scenario.steps)[: scenario.steps] for worker in range(scenario.cluster.workers)], axis=1
    )


def _pull_seconds(scenario: Scenario) -> Floats:
    """How long each worker's answer takes when all leave at once, without the latency; shape (workers,)."""
    cluster = scenario.cluster
    workers = range(cluster.workers)
    link = shared_link(
        cluster.up(cluster.workers), [cluster.down(worker) for worker in workers], scenario.gradient_bytes
    )
    link.join(0.0, workers)
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


# On a ring.


def ring_rounds(starts: Floats, transfer_seconds: Floats, rounds: int, *, eager: bool) -> tuple[Floats, Floats]:
    """When each transfer of a ring starts, shape (rounds, …, ranks), and when each rank has finished all of its own.

    starts: when each rank joins, shape (…, ranks). transfer_seconds: from rank i to i + 1, latency included.

    >>> _, ends = ring_rounds(np.array([0.0, 0.0, 5.0]), np.array([1.0, 1.0, 1.0]), rounds=4, eager=False)
    >>> ends.tolist()
    [9.0, 9.0, 9.0]
    """
    begun = np.empty((rounds, *starts.shape))
    free = starts
    for number in range(rounds):
        start = begun[number]
        if eager:
            start[...] = free
        else:
            np.maximum(free[..., :-1], free[..., 1:], out=start[..., :-1])
            np.maximum(free[..., -1], free[..., 0], out=start[..., -1])
        end = start + transfer_seconds
        free = np.empty_like(end)
        np.maximum(end[..., 1:], end[..., :-1], out=free[..., 1:])
        np.maximum(end[..., 0], end[..., -1], out=free[..., 0])
    return begun, free


def ring_ends(starts: Floats, transfer_seconds: Floats, rounds: int, *, eager: bool) -> Floats:
    """When each rank has finished its part; arguments as for `ring_rounds`."""
    return ring_rounds(starts, transfer_seconds, rounds, eager=eager)[1]


def ring_matrix(transfer_seconds: Floats, rounds: int, *, eager: bool) -> Floats:
    """The max-plus matrix M of a whole ring: rank i has finished at max over j of M[j, i] + starts[j]."""
    ranks = len(transfer_seconds)
    alone = np.full((ranks, ranks), -math.inf)
    np.fill_diagonal(alone, 0.0)
    return ring_ends(alone, transfer_seconds, rounds, eager=eager)


def _ring_trace(scenario: Scenario) -> Trace:
    cluster, steps, workers = scenario.cluster, scenario.steps, scenario.cluster.workers
    schedule, eager = ring(workers), scenario.communication.sends == "eager"
    rounds, chunk_bytes = len(schedule.rounds), scenario.gradient_bytes / schedule.chunks
    seconds = np.array(
        [
            cluster.latency_seconds + chunk_bytes / min(cluster.up(rank), cluster.down((rank + 1) % workers))
            for rank in range(workers)
        ]
    )
    drawn = _drawn(scenario)
    matrix = ring_matrix(seconds, rounds, eager=eager)
    starts, arrivals, ends = np.empty_like(drawn), np.empty_like(drawn), np.empty_like(drawn)
    free = np.zeros(workers)
    for step in range(steps):
        starts[step] = free
        arrivals[step] = free + drawn[step]
        ends[step] = free = (matrix + arrivals[step][:, None]).max(axis=0)
    builder = TraceBuilder()
    _tell_ring_spans(builder, scenario, starts, arrivals, ends)
    if rounds:
        begun = ring_rounds(arrivals, seconds, rounds, eager=eager)[0].transpose(1, 0, 2)  # by step, round, source
        source = np.arange(workers, dtype=np.int32)
        chunks = np.array([[transfer.chunk for transfer in members] for members in schedule.rounds], dtype=np.int32)
        count = begun.size
        builder.extend(
            "transfers",
            source=np.tile(source, steps * rounds),
            target=np.tile((source + 1) % workers, steps * rounds),
            bytes=np.full(count, chunk_bytes),
            start_seconds=begun.ravel(),
            end_seconds=(begun + seconds).ravel(),
            chunk=np.tile(chunks.ravel(), steps),
            collective=np.repeat(np.arange(steps), rounds * workers),
        )
    versions = np.arange(1, steps + 1)
    builder.extend("updates", version=versions, server=np.full(steps, NO_SERVER), time_seconds=ends.max(axis=1))
    rows = steps * workers
    builder.extend(
        "contributions",
        version=np.repeat(versions, workers), server=np.full(rows, NO_SERVER),
        worker=np.tile(np.arange(workers), steps), step=np.repeat(versions - 1, workers),
        read_version=np.repeat(versions - 1, workers), first_item=np.zeros(rows), items=np.ones(rows),
        applied=np.ones(rows, dtype=bool), cancelled=np.zeros(rows, dtype=bool),
    )  # fmt: skip
    return builder.build(
        workers=workers, servers=0, producer="simulated", scenario=scenario.table(), seed=scenario.seed,
        engine="recurrence",
    )  # fmt: skip


def _tell_ring_spans(builder: TraceBuilder, scenario: Scenario, starts: Floats, arrivals: Floats, ends: Floats) -> None:
    """Until the last has joined a worker waits, from then on it communicates."""
    steps, workers = starts.shape
    worker = np.broadcast_to(np.arange(workers), starts.shape)
    step = np.broadcast_to(np.arange(steps)[:, None], starts.shape)
    last = np.broadcast_to(arrivals.max(axis=1)[:, None], starts.shape)
    waits = last > arrivals
    everybody = np.ones_like(waits)
    for kind, rows, start, end, num_bytes in (
        (SpanKind.COMPUTE, everybody, starts, arrivals, 0.0),
        (SpanKind.WAIT, waits, arrivals, last, 0.0),
        (SpanKind.ALL_REDUCE, everybody, last, ends, scenario.gradient_bytes),
    ):
        count = int(rows.sum())
        builder.extend(
            "spans",
            worker=worker[rows], kind=np.full(count, kind), step=step[rows], start_seconds=start[rows],
            end_seconds=end[rows], bytes=np.full(count, num_bytes), label=np.zeros(count, dtype="U1"),
        )  # fmt: skip
