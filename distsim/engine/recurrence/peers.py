"""Workers that sum gradients, or average parameters, among themselves or through one server: `engine.peers` as arrays.

Synchronous training is local SGD with a period of one step.
"""

from __future__ import annotations

import numpy as np

from distsim.engine.recurrence.all_reduce import in_sequence
from distsim.engine.recurrence.calls import tell_all_reduces, transfers
from distsim.engine.recurrence.collectives import all_reduces
from distsim.engine.recurrence.drawn import Floats, drawn_seconds
from distsim.engine.recurrence.one_server import OneServer
from distsim.engine.recurrence.rows import SpanRows, finished, tell_updates
from distsim.policies import LocalSgd
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder, Transfers


def run(scenario: Scenario, apply_seconds: float = 0.0) -> Trace:
    """Works `scenario` out. apply_seconds: a server's own work for each average."""
    steps, workers, num_bytes = scenario.steps, scenario.cluster.workers, scenario.gradient_bytes
    period = scenario.policy.period if isinstance(scenario.policy, LocalSgd) else 1
    updates = -(-steps // period)
    drawn = np.zeros((updates, period, workers))
    drawn.reshape(-1, workers)[:steps] = drawn_seconds(scenario)
    worked = drawn.cumsum(axis=1)
    rows = SpanRows()
    if scenario.servers:
        arrivals, ends, carried = _through_one_server(rows, scenario, worked[:, -1], apply_seconds)
    else:
        calls = all_reduces(scenario, [num_bytes], updates)
        (arrivals,), (ends,) = (times.swapaxes(0, 1) for times in in_sequence(calls, worked[:, -1:]))
        carried = transfers(calls, arrivals[:, None])

    begins = np.concatenate([np.zeros((1, workers)), ends[:-1]])[:, None]
    bounds = np.concatenate([begins, begins + worked], axis=1)  # of the local steps
    starts, stops = (bound.reshape(-1, workers)[:steps] for bound in (bounds[:, :-1], bounds[:, 1:]))
    rows.add(SpanKind.COMPUTE, np.arange(workers), np.arange(steps)[:, None], starts, stops)
    last_steps = np.minimum(np.arange(1, updates + 1) * period, steps) - 1
    tell_all_reduces(rows, last_steps[:, None], arrivals, ends, arrivals, num_bytes)
    builder = TraceBuilder()
    builder.extend("spans", **rows.columns())
    tell_updates(builder, ends.max(axis=1), workers, period, steps)
    return finished(builder, scenario, carried)


def _through_one_server(
    rows: SpanRows, scenario: Scenario, work: Floats, apply_seconds: float
) -> tuple[Floats, Floats, Transfers]:
    """When workers are ready for each average, and when they have it; the transfers; and what the server does."""
    workers, num_bytes = scenario.cluster.workers, scenario.gradient_bytes
    eager, fifo = scenario.communication.sends == "eager", scenario.receive == "fifo"
    server = OneServer(scenario.cluster, num_bytes, apply_seconds, eager=eager, fifo=fifo)
    ready, began, arrived, answered, pulled = server.averages(work)
    worker, number = np.arange(workers), np.arange(len(work))[:, None]
    origins, aims = ([f"{way} worker {rank}" for rank in range(workers)] for way in ("from", "to"))
    rows.add(SpanKind.RECEIVE, workers, number, began, arrived, num_bytes, (worker, origins))
    if apply_seconds > 0.0:
        rows.add(SpanKind.APPLY, workers, number, answered[:, :1] - apply_seconds, answered[:, :1])
    rows.add(SpanKind.SEND, workers, number, answered, pulled, num_bytes, (worker, aims))
    home = np.full(workers, workers)
    shape = (len(work), 2, workers)  # of the pushes and pulls
    columns = (
        [worker, home], [home, worker], num_bytes, np.stack([began, answered], axis=1),
        np.stack([arrived, pulled], axis=1), 0, number[:, None],
    )  # fmt: skip
    return ready, pulled, Transfers(*(np.broadcast_to(column, shape).ravel() for column in columns))
