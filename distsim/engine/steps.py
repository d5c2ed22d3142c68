"""Workers' steps with one server as columns, and the trace they make: for the engines that have no processes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Flags, Floats, Indices, Integers
from distsim.scenario import Scenario
from distsim.trace import NO_COLLECTIVE, NO_VERSION, SpanKind, Texts, Trace, TraceBuilder


@dataclass(frozen=True)
class Steps:
    """Each step of a worker has one place in every column. Times are in seconds, NaN where they have not come to pass.

    step: the worker's own count of them. ready: when the compute is over unless it is cut. began: when the push does,
    which is when it is ready, or when a fifo server turns to it. arrived: when the server had it. outcome: the update
    that the gradient goes into, NO_VERSION where it is dropped, NaN where that is undecided. answered, pulled: when the
    parameters left the server, and were there. cut: when the step was cancelled. updates: by version, when it was
    applied.
    """

    worker: Indices
    step: Integers
    read_version: Integers
    start: Floats
    ready: Floats
    began: Floats
    arrived: Floats
    outcome: Floats
    answered: Floats
    pulled: Floats
    cut: Floats
    updates: Floats


def steps_trace(scenario: Scenario, engine: str, steps: Steps, apply_seconds: float) -> Trace:
    """The trace of a run. apply_seconds: the server's own work for each update."""
    builder = TraceBuilder()
    server, updates = scenario.servers[0], steps.updates
    _tell_computing(builder, scenario, steps)
    _tell_pushes(builder, scenario, steps)
    _tell_pulls(builder, scenario, steps)
    if apply_seconds > 0.0:
        builder.extend(
            "spans", worker=server, kind=SpanKind.APPLY, step=np.arange(len(updates)),
            start_seconds=updates - apply_seconds, end_seconds=updates, bytes=0.0, label="",
        )  # fmt: skip
    builder.extend("updates", version=np.arange(1, len(updates) + 1), server=server, time_seconds=updates)
    _tell_contributions(builder, server, steps)
    return builder.build(
        workers=scenario.cluster.workers,
        servers=1,
        producer="simulated",
        scenario=scenario.table(),
        seed=scenario.seed,
        engine=engine,
    )


def _tell_computing(builder: TraceBuilder, scenario: Scenario, steps: Steps) -> None:
    builder.extend(
        "spans", worker=steps.worker, kind=SpanKind.COMPUTE, step=steps.step,
        start_seconds=steps.start, end_seconds=np.fmin(steps.ready, steps.cut), bytes=0.0, label="",
    )  # fmt: skip
    if scenario.receive == "fifo":
        return  # before its turn nothing of a push has begun
    stopped = (steps.ready <= steps.cut) & np.isnan(steps.arrived)
    builder.extend(
        "spans", worker=steps.worker[stopped], kind=SpanKind.SEND, step=steps.step[stopped],
        start_seconds=steps.ready[stopped], end_seconds=steps.cut[stopped], bytes=0.0, label="cancelled",
    )  # fmt: skip


def _tell_pushes(builder: TraceBuilder, scenario: Scenario, steps: Steps) -> None:
    """A gradient that arrives: the worker sends, the server receives, the network carries."""
    server, num_bytes = scenario.servers[0], scenario.gradient_bytes
    here = _where(~np.isnan(steps.arrived))
    worker, step, arrived, began = steps.worker[here], steps.step[here], steps.arrived[here], steps.began[here]
    builder.extend(
        "spans", worker=worker, kind=SpanKind.SEND, step=step,
        start_seconds=steps.ready[here], end_seconds=arrived, bytes=num_bytes, label="",
    )  # fmt: skip
    builder.extend(
        "spans", worker=server, kind=SpanKind.RECEIVE, step=step, start_seconds=began, end_seconds=arrived,
        bytes=num_bytes, label=Texts(worker, [f"from worker {rank}" for rank in range(server)]),
    )  # fmt: skip
    builder.extend(
        "transfers", source=worker, target=server, bytes=num_bytes, start_seconds=began, end_seconds=arrived,
        chunk=0, collective=NO_COLLECTIVE,
    )  # fmt: skip


def _tell_pulls(builder: TraceBuilder, scenario: Scenario, steps: Steps) -> None:
    """Parameters that arrive: the worker has waited for them since it sent, or since it was cancelled."""
    server, num_bytes = scenario.servers[0], scenario.gradient_bytes
    back = _where(~np.isnan(steps.pulled))
    worker, step, answered, pulled = steps.worker[back], steps.step[back], steps.answered[back], steps.pulled[back]
    asked = np.where(np.isnan(steps.cut[back]), steps.arrived[back], steps.cut[back])
    waits = answered > asked
    builder.extend(
        "spans", worker=worker[waits], kind=SpanKind.WAIT, step=step[waits],
        start_seconds=asked[waits], end_seconds=answered[waits], bytes=0.0, label="",
    )  # fmt: skip
    builder.extend(
        "spans", worker=worker, kind=SpanKind.RECEIVE, step=step,
        start_seconds=answered, end_seconds=pulled, bytes=num_bytes, label="",
    )  # fmt: skip
    builder.extend(
        "spans", worker=server, kind=SpanKind.SEND, step=step, start_seconds=answered, end_seconds=pulled,
        bytes=num_bytes, label=Texts(worker, [f"to worker {rank}" for rank in range(server)]),
    )  # fmt: skip
    builder.extend(
        "transfers", source=server, target=worker, bytes=num_bytes, start_seconds=answered, end_seconds=pulled,
        chunk=0, collective=NO_COLLECTIVE,
    )  # fmt: skip


def _tell_contributions(builder: TraceBuilder, server: int, steps: Steps) -> None:
    """In the order of arrival, or of being cancelled; those for an update that never came are left out."""
    cancelled = ~np.isnan(steps.cut)
    rows = np.flatnonzero((steps.outcome <= len(steps.updates)) | cancelled)
    known = np.where(cancelled, steps.cut, steps.arrived)[rows]
    if (known[1:] < known[:-1]).any():
        rows = rows[np.argsort(known, kind="stable")]
    cancelled = cancelled[rows]
    applied = ~cancelled & (steps.outcome[rows] > 0)
    builder.extend(
        "contributions", version=np.where(applied, steps.outcome[rows], NO_VERSION).astype(np.int64), server=server,
        worker=steps.worker[rows], step=steps.step[rows], read_version=steps.read_version[rows],
        first_item=0, items=1, applied=applied, cancelled=cancelled,
    )  # fmt: skip


def _where(rows: Flags) -> slice | NDArray[np.intp]:
    """What selects these rows: without a copy of them where they are the first so many."""
    count = int(np.count_nonzero(rows))
    return slice(count) if rows[:count].all() else np.flatnonzero(rows)
