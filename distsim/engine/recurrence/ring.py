"""Synchronous training over a ring: ranks only wait for neighbours.

With e[i] the time at which rank i has finished its earlier rounds, the transfer from i to i + 1 takes d[i] from
max(e[i], e[i + 1]) on (eager: from e[i] on). That is linear in the max-plus algebra (Baccelli et al. 1992,
Synchronization and Linearity): one matrix serves every step.
"""

from __future__ import annotations

import math

import numpy as np

from distsim.collectives import ring
from distsim.engine.recurrence.drawn import Floats, drawn_seconds
from distsim.scenario import Scenario
from distsim.trace import NO_SERVER, SpanKind, Trace, TraceBuilder


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


def run(scenario: Scenario) -> Trace:
    """Works `scenario` out."""
    cluster, steps, workers = scenario.cluster, scenario.steps, scenario.cluster.workers
    schedule, eager = ring(workers), scenario.communication.sends == "eager"
    rounds, chunk_bytes = len(schedule.rounds), scenario.gradient_bytes / schedule.chunks
    seconds = np.array(
        [
            cluster.latency_seconds + chunk_bytes / min(cluster.up(rank), cluster.down((rank + 1) % workers))
            for rank in range(workers)
        ]
    )
    drawn = drawn_seconds(scenario)
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
