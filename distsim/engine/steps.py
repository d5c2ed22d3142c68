"""Workers' steps with one server as columns, and the trace they make: for the engines that have no processes.

Each step of a worker has one place in every column. Times that have not come to pass are NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distsim.scenario import Scenario
from distsim.trace import NO_COLLECTIVE, NO_VERSION, SpanKind, Texts, Trace, TraceBuilder

WORKER, STEP, READ_VERSION = 0, 1, 2
START, READY = 3, 4  # of the compute: when it began, and when it is over unless it is cut
BEGAN, ARRIVED = 5, 6  # of the push: when the server turned to it, and when it was there
ANSWERED, PULLED = 7, 8  # of the pull: when the parameters left, and when they were there
OUTCOME = 9  # the update that the gradient goes into, NO_VERSION where dropped, less where undecided
CUT = 10  # when the step was cancelled
COLUMNS = 11

Floats = NDArray[np.float64]


def steps_trace(scenario: Scenario, engine: str, steps: Floats, updates: Floats, apply_seconds: float) -> Trace:
    """The trace of a run. steps: columns as above, shape (11, rows). updates: the time of each version."""
    builder = TraceBuilder()
    server = scenario.servers[0]
    _tell_computing(builder, scenario, steps)
    _tell_pushes(builder, scenario, steps)
    _tell_pulls(builder, scenario, steps)
    if apply_seconds > 0.0:
        builder.extend(
            "spans", worker=server, kind=SpanKind.APPLY, step=np.arange(len(updates)),
            start_seconds=updates - apply_seconds, end_seconds=updates, bytes=0.0, label="",
        )  # fmt: skip
    builder.extend("updates", version=np.arange(1, len(updates) + 1), server=server, time_seconds=updates)
    _tell_contributions(builder, server, steps, len(updates))
    return builder.build(
        workers=scenario.cluster.workers,
        servers=1,
        producer="simulated",
        scenario=scenario.table(),
        seed=scenario.seed,
        engine=engine,
    )


def _tell_computing(builder: TraceBuilder, scenario: Scenario, steps: Floats) -> None:
    worker, step, ready, cut = steps[WORKER], steps[STEP], steps[READY], steps[CUT]
    builder.extend(
        "spans", worker=worker.astype(np.int32), kind=SpanKind.COMPUTE, step=step.astype(np.int64),
        start_seconds=steps[START], end_seconds=np.fmin(ready, cut), bytes=0.0, label="",
    )  # fmt: skip
    if scenario.receive == "fifo":
        return  # before its turn nothing of a push has begun
    stopped = (ready <= cut) & np.isnan(steps[ARRIVED])
    builder.extend(
        "spans", worker=worker[stopped], kind=SpanKind.SEND, step=step[stopped],
        start_seconds=ready[stopped], end_seconds=cut[stopped], bytes=0.0, label="cancelled",
    )  # fmt: skip


def _tell_pushes(builder: TraceBuilder, scenario: Scenario, steps: Floats) -> None:
    """A gradient that arrives: the worker sends, the server receives, the network carries."""
    server, num_bytes = scenario.servers[0], scenario.gradient_bytes
    here = ~np.isnan(steps[ARRIVED])
    worker, step = steps[WORKER, here].astype(np.int32), steps[STEP, here].astype(np.int64)
    began, arrived = steps[BEGAN, here], steps[ARRIVED, here]
    builder.extend(
        "spans", worker=worker, kind=SpanKind.SEND, step=step,
        start_seconds=steps[READY, here], end_seconds=arrived, bytes=num_bytes, label="",
    )  # fmt: skip
    builder.extend(
        "spans", worker=server, kind=SpanKind.RECEIVE, step=step, start_seconds=began, end_seconds=arrived,
        bytes=num_bytes, label=Texts(worker, [f"from worker {rank}" for rank in range(server)]),
    )  # fmt: skip
    builder.extend(
        "transfers", source=worker, target=server, bytes=num_bytes, start_seconds=began, end_seconds=arrived,
        chunk=0, collective=NO_COLLECTIVE,
    )  # fmt: skip


def _tell_pulls(builder: TraceBuilder, scenario: Scenario, steps: Floats) -> None:
    """Parameters that arrive: the worker has waited for them since it sent, or since it was cancelled."""
    server, num_bytes = scenario.servers[0], scenario.gradient_bytes
    back = ~np.isnan(steps[PULLED])
    worker, step = steps[WORKER, back].astype(np.int32), steps[STEP, back].astype(np.int64)
    answered, pulled, cut = steps[ANSWERED, back], steps[PULLED, back], steps[CUT, back]
    asked = np.where(np.isnan(cut), steps[ARRIVED, back], cut)
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


def _tell_contributions(builder: TraceBuilder, server: int, steps: Floats, versions: int) -> None:
    """In the order of arrival, or of being cancelled; those for an update that never came are left out."""
    decided = (steps[OUTCOME] >= NO_VERSION) & (steps[OUTCOME] <= versions)
    rows = np.flatnonzero(decided | ~np.isnan(steps[CUT]))
    cancelled = ~np.isnan(steps[CUT, rows])
    known = np.where(cancelled, steps[CUT, rows], steps[ARRIVED, rows])
    if (known[1:] < known[:-1]).any():
        rows = rows[np.argsort(known, kind="stable")]
    cancelled = ~np.isnan(steps[CUT, rows])
    version = steps[OUTCOME, rows].astype(np.int64)
    applied = ~cancelled & (version > 0)
    builder.extend(
        "contributions", version=np.where(applied, version, NO_VERSION), server=server,
        worker=steps[WORKER, rows].astype(np.int32), step=steps[STEP, rows].astype(np.int64),
        read_version=steps[READ_VERSION, rows].astype(np.int64), first_item=0, items=1,
        applied=applied, cancelled=cancelled,
    )  # fmt: skip
