"""Workers' steps with servers as columns, and the trace of these steps. For the engines without processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distsim.arrays import Floats, Indices, Integers
from distsim.scenario import Scenario
from distsim.trace import NO_VERSION, SpanKind, Trace, TraceBuilder


@dataclass(frozen=True)
class Steps:
    """A row for each step of a worker with one server. Times: in seconds, NaN where the event has not happened.

    step: the worker's own count. start, ready: the start and end of an uncut compute. began: the start of the push:
    `ready`, or the moment when a fifo server starts to receive the push. arrived: when the server had the gradient.
    outcome: the gradient's update, NO_VERSION for a dropped gradient, NaN where nothing is decided. answered, pulled:
    when the parameters left the server, and arrived. cut: when the step was cancelled. updates: by version, the times.
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


def steps_trace(scenario: Scenario, engine: str, of_servers: Sequence[Steps], apply_seconds: float) -> Trace:
    """The trace of a run. of_servers: by server, the steps with this server; only exchanges and updates differ.

    apply_seconds: each server's own work for each update.
    """
    builder, num_bytes = TraceBuilder(), scenario.gradient_bytes / len(of_servers)
    _write_computing(builder, scenario, of_servers[0])
    for server, steps in zip(scenario.servers, of_servers, strict=True):
        arrived, pulled = steps.arrived, steps.pulled
        if scenario.communication.colocated:
            arrived, pulled = (
                np.where(steps.worker == scenario.host(server), np.nan, end) for end in (arrived, pulled)
            )
        builder.push(steps.worker, server, steps.step, num_bytes, steps.ready, arrived, steps.began)
        asked = np.where(np.isnan(steps.cut), steps.arrived, steps.cut)
        builder.pull(steps.worker, server, steps.step, num_bytes, asked, steps.answered, pulled)
        if apply_seconds > 0.0:
            builder.extend(
                "spans", worker=server, kind=SpanKind.APPLY, step=np.arange(len(steps.updates)),
                start_seconds=steps.updates - apply_seconds, end_seconds=steps.updates, bytes=0.0, label="",
            )  # fmt: skip
        _write_contributions(builder, server, steps)
    times = np.stack([steps.updates for steps in of_servers], axis=1).ravel()
    order = np.argsort(times, kind="stable")
    builder.extend(
        "updates", version=order // len(of_servers) + 1, time_seconds=times[order],
        server=np.array(scenario.servers)[order % len(of_servers)],
    )  # fmt: skip
    return builder.build(
        workers=scenario.cluster.workers,
        servers=len(of_servers),
        producer="simulated",
        scenario=scenario.table(),
        seed=scenario.seed,
        engine=engine,
    )


def _write_computing(builder: TraceBuilder, scenario: Scenario, steps: Steps) -> None:
    builder.extend(
        "spans", worker=steps.worker, kind=SpanKind.COMPUTE, step=steps.step,
        start_seconds=steps.start, end_seconds=np.fmin(steps.ready, steps.cut), bytes=0.0, label="",
    )  # fmt: skip
    if scenario.receive == "fifo":
        return  # a push that waits in the queue has sent nothing
    stopped = (steps.ready <= steps.cut) & np.isnan(steps.arrived)
    builder.extend(
        "spans", worker=steps.worker[stopped], kind=SpanKind.SEND, step=steps.step[stopped],
        start_seconds=steps.ready[stopped], end_seconds=steps.cut[stopped], bytes=0.0, label="cancelled",
    )  # fmt: skip


def _write_contributions(builder: TraceBuilder, server: int, steps: Steps) -> None:
    """Writes gradients in the order of arrival or cancellation, but no gradients for an update that never came."""
    cancelled = ~np.isnan(steps.cut)
    rows = np.flatnonzero((steps.outcome <= len(steps.updates)) | cancelled)
    known = np.where(cancelled, steps.cut, steps.arrived)[rows]
    if (known[1:] < known[:-1]).any():
        rows = rows[np.argsort(known, kind="stable")]
    cancelled = cancelled[rows]
    applied = ~cancelled & (steps.outcome[rows] > 0)
    version = np.where(applied, steps.outcome[rows], NO_VERSION).astype(np.int64)
    builder.contributions(server, steps.worker[rows], steps.step[rows], steps.read_version[rows], version, cancelled)
