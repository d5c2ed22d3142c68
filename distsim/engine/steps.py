"""Workers' steps with one server as columns, and the trace they make: for the engines that have no processes.

One row is one step of one worker. Times that have not come to pass are NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.scenario import Scenario
from distsim.trace import NO_COLLECTIVE, NO_VERSION, SpanKind, Trace, TraceBuilder

WORKER, STEP, READ_VERSION = 0, 1, 2
START, READY = 3, 4  # of the compute: when it began, and when it is over unless it is cut
BEGAN, ARRIVED = 5, 6  # of the push: when the server turned to it, and when it was there
ANSWERED, PULLED = 7, 8  # of the pull: when the parameters left, and when they were there
OUTCOME = 9  # the update that the gradient goes into, NO_VERSION where dropped, less where undecided
CUT = 10  # when the step was cancelled

Floats = NDArray[np.float64]


def steps_trace(scenario: Scenario, engine: str, steps: Floats, updates: Floats, apply_seconds: float) -> Trace:
    """The trace of a run. steps: rows as above, shape (rows, 11). updates: the time of each version."""
    builder = TraceBuilder()
    server = scenario.servers[0]
    _tell_spans(builder, scenario, steps, updates, apply_seconds)
    _tell_transfers(builder, scenario, steps)
    versions = np.arange(1, len(updates) + 1)
    builder.extend("updates", version=versions, server=np.full(len(updates), server), time_seconds=updates)
    _tell_contributions(builder, server, steps, len(updates))
    return builder.build(
        workers=scenario.cluster.workers,
        servers=1,
        producer="simulated",
        scenario=scenario.table(),
        seed=scenario.seed,
        engine=engine,
    )


def _tell_spans(
    builder: TraceBuilder, scenario: Scenario, steps: Floats, updates: Floats, apply_seconds: float
) -> None:
    num_bytes, server, fifo = scenario.gradient_bytes, scenario.servers[0], scenario.receive == "fifo"
    worker, step, ready, answered, pulled, cut = (
        steps[:, column] for column in (WORKER, STEP, READY, ANSWERED, PULLED, CUT)
    )
    asked = np.where(np.isnan(cut), steps[:, ARRIVED], cut)
    here, back = ~np.isnan(steps[:, ARRIVED]), ~np.isnan(pulled)
    waited = back & (answered > asked)
    stopped = (ready <= cut) & ~here if not fifo else np.zeros(len(steps), dtype=bool)
    whole = slice(None)
    # (rows, whose, kind, start, end, bytes, label)
    parts: list[tuple[Any, Any, SpanKind, Floats, Floats, float, str]] = [
        (whole, worker, SpanKind.COMPUTE, steps[:, START], np.fmin(ready, cut), 0.0, ""),
        (here, worker, SpanKind.SEND, ready, steps[:, ARRIVED], num_bytes, ""),
        (here, server, SpanKind.RECEIVE, steps[:, BEGAN], steps[:, ARRIVED], num_bytes, "from worker"),
        (stopped, worker, SpanKind.SEND, ready, cut, 0.0, "cancelled"),
        (waited, worker, SpanKind.WAIT, asked, answered, 0.0, ""),
        (back, worker, SpanKind.RECEIVE, answered, pulled, num_bytes, ""),
        (back, server, SpanKind.SEND, answered, pulled, num_bytes, "to worker"),
    ]
    counts = [len(steps) if rows is whole else int(rows.sum()) for rows, *_ in parts]
    applies = len(updates) if apply_seconds > 0.0 else 0
    total = sum(counts) + applies
    names = [f"{way} {rank}" for way in ("from worker", "to worker") for rank in range(scenario.cluster.workers)]
    spans: dict[str, NDArray[Any]] = {
        "worker": np.empty(total, np.int32),
        "kind": np.empty(total, np.int8),
        "step": np.empty(total, np.int64),
        "start_seconds": np.empty(total),
        "end_seconds": np.empty(total),
        "bytes": np.empty(total),
        "label": np.zeros(total, dtype=f"U{max(len(name) for name in [*names, 'cancelled'])}"),
    }
    at = 0
    for (rows, whose, kind, start, end, size, label), count in zip(parts, counts, strict=True):
        here_now = slice(at, at + count)
        at += count
        if not count:
            continue
        spans["worker"][here_now] = server if whose is server else whose[rows]
        spans["kind"][here_now] = kind
        spans["step"][here_now] = step[rows]
        spans["start_seconds"][here_now] = start[rows]
        spans["end_seconds"][here_now] = end[rows]
        spans["bytes"][here_now] = size
        if label.endswith("worker"):
            texts = np.array([f"{label} {rank}" for rank in range(scenario.cluster.workers)])
            spans["label"][here_now] = texts[worker[rows].astype(np.intp)]
        elif label:
            spans["label"][here_now] = label
    if applies:
        here_now = slice(at, total)
        spans["worker"][here_now] = server
        spans["kind"][here_now] = SpanKind.APPLY
        spans["step"][here_now] = np.arange(applies)
        spans["start_seconds"][here_now] = updates - apply_seconds
        spans["end_seconds"][here_now] = updates
        spans["bytes"][here_now] = 0.0
    builder.extend("spans", **spans)


def _tell_transfers(builder: TraceBuilder, scenario: Scenario, steps: Floats) -> None:
    server = scenario.servers[0]
    pushed, pulled = (steps[~np.isnan(steps[:, column])] for column in (ARRIVED, PULLED))
    count = len(pushed) + len(pulled)
    builder.extend(
        "transfers",
        source=np.concatenate([pushed[:, WORKER], np.full(len(pulled), server)]).astype(np.int32),
        target=np.concatenate([np.full(len(pushed), server), pulled[:, WORKER]]).astype(np.int32),
        bytes=np.full(count, scenario.gradient_bytes),
        start_seconds=np.concatenate([pushed[:, BEGAN], pulled[:, ANSWERED]]),
        end_seconds=np.concatenate([pushed[:, ARRIVED], pulled[:, PULLED]]),
        chunk=np.zeros(count, np.int32),
        collective=np.full(count, NO_COLLECTIVE),
    )


def _tell_contributions(builder: TraceBuilder, server: int, steps: Floats, versions: int) -> None:
    """In the order of arrival, or of being cancelled; those for an update that never came are left out."""
    cancelled = ~np.isnan(steps[:, CUT])
    decided = (steps[:, OUTCOME] >= NO_VERSION) & (steps[:, OUTCOME] <= versions)
    rows = steps[decided | cancelled]
    known = np.where(np.isnan(rows[:, CUT]), rows[:, ARRIVED], rows[:, CUT])
    if (known[1:] < known[:-1]).any():
        rows = rows[np.argsort(known, kind="stable")]
    cancelled = ~np.isnan(rows[:, CUT])
    applied = ~cancelled & (rows[:, OUTCOME] > 0)
    builder.extend(
        "contributions",
        version=np.where(applied, rows[:, OUTCOME], NO_VERSION).astype(np.int64),
        server=np.full(len(rows), server, np.int32),
        worker=rows[:, WORKER].astype(np.int32),
        step=rows[:, STEP].astype(np.int64),
        read_version=rows[:, READ_VERSION].astype(np.int64),
        first_item=np.zeros(len(rows), np.int32),
        items=np.ones(len(rows), np.int32),
        applied=applied,
        cancelled=cancelled,
    )
