"""Workers that sum gradients, or average parameters, among themselves or through one server: `engine.peers` as arrays.

Synchronous training is local SGD with a period of one step.
"""

from __future__ import annotations

import numpy as np

from distsim.engine.recurrence.all_reduce import in_sequence
from distsim.engine.recurrence.calls import tell_all_reduces, transfers
from distsim.engine.recurrence.collectives import all_reduce
from distsim.engine.recurrence.drawn import Floats, drawn_seconds
from distsim.engine.recurrence.one_server import OneServer
from distsim.engine.recurrence.rows import SpanRows, finished, tell_updates
from distsim.policies import LocalSgd
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


def run(scenario: Scenario, apply_seconds: float = 0.0) -> Trace:
    """Works `scenario` out. apply_seconds: a server's own work for each average."""
    steps, workers, num_bytes = scenario.steps, scenario.cluster.workers, scenario.gradient_bytes
    period = scenario.policy.period if isinstance(scenario.policy, LocalSgd) else 1
    updates = -(-steps // period)
    drawn = np.zeros((updates, period, workers))
    drawn.reshape(-1, workers)[:steps] = drawn_seconds(scenario)
    worked = drawn.cumsum(axis=1)
    average = all_reduce(scenario, num_bytes, updates, apply_seconds)
    arrivals, ends = in_sequence([average], worked[:, -1:])

    rows, worker = SpanRows(), np.arange(workers)
    begins = np.concatenate([np.zeros((1, 1, workers)), ends[:-1]])
    bounds = np.concatenate([begins, begins + worked], axis=1)  # of the local steps
    starts, stops = (bound.reshape(-1, workers)[:steps] for bound in (bounds[:, :-1], bounds[:, 1:]))
    rows.add(SpanKind.COMPUTE, worker, np.arange(steps)[:, None], starts, stops)
    last_steps = np.minimum(np.arange(1, updates + 1) * period, steps) - 1
    tell_all_reduces(rows, last_steps[:, None, None], arrivals, ends, arrivals, num_bytes)
    if isinstance(average, OneServer):
        _tell_server(rows, scenario, average, arrivals)
    builder = TraceBuilder()
    builder.extend("spans", **rows.columns())
    tell_updates(builder, ends.max(axis=(1, 2)), workers, period, steps)
    return finished(builder, scenario, transfers([average], arrivals))


def _tell_server(rows: SpanRows, scenario: Scenario, average: OneServer, arrivals: Floats) -> None:
    """What the one server does: it receives from all, applies, and sends to all."""
    workers, num_bytes = scenario.cluster.workers, scenario.gradient_bytes
    times = np.empty((2, len(arrivals), 2 * workers))
    average.transfers(arrivals[:, 0], times)
    number = np.arange(len(arrivals))[:, None]
    from_workers, to_workers = ([f"{way} worker {rank}" for rank in range(workers)] for way in ("from", "to"))
    starts, ends = times
    rows.add(
        SpanKind.RECEIVE, workers, number, starts[:, :workers], ends[:, :workers], num_bytes, from_workers
    )
    rows.add(SpanKind.SEND, workers, number, starts[:, workers:], ends[:, workers:], num_bytes, to_workers)
    if average.apply_seconds > 0.0:
        answered = starts[:, workers]
        rows.add(SpanKind.APPLY, workers, number[:, 0], answered - average.apply_seconds, answered)
