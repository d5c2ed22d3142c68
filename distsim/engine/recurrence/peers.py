"""Workers that sum gradients or average parameters, by collectives or through one server: `engine.peers` as arrays.

Synchronous training is local SGD with a period of one step.
"""

from __future__ import annotations

import numpy as np

from distsim import trace_size
from distsim.arrays import Floats
from distsim.collective_times.call_site import CallSite
from distsim.engine.recurrence.all_reduce_sequence import in_sequence, tell_exchanges, transfers
from distsim.engine.recurrence.rows import SpanRows, finished, step_seconds, tell_updates
from distsim.engine.recurrence.server import OneServer
from distsim.groups import ALL_REDUCE, GroupExchange
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder, Transfers


def cannot(scenario: Scenario) -> str | None:
    """The part of `scenario`, where all workers join each all-reduce, that has no recurrence, or None."""
    return why_not(scenario, ALL_REDUCE)


def why_not(scenario: Scenario, exchange: GroupExchange) -> str | None:
    """The part of `scenario` that leaves an exchange, which all workers join, without recurrence, or None.

    The schedule decides, not the name of its kind: each recurrence is exact for the schedules that it checks for.
    """
    communication, nodes, site = scenario.communication, scenario.cluster.nodes, call_site(scenario, exchange)
    if communication.colocated:
        return "communication.colocated = true"
    if not site.collective.compact:
        trace_size.check_schedule(scenario, exchange)
    kind = f"communication.kind = {communication.kind!r}"
    if site.form in ("tree", "one server"):
        return None if nodes is None else f"{kind} with cluster.nodes"
    if site.form == "other":
        return f"{kind}, where a rank may do several transfers at once"
    link = site.shared_link()
    if link is None:
        return None
    sends = f"with sends = {communication.sends!r}"
    return f"{kind} {sends}, where transfers may share the {link[0]}-link of host {link[1]}"


def call_site(scenario: Scenario, exchange: GroupExchange = ALL_REDUCE) -> CallSite:
    """Where the workers of `scenario` call their all-reduces, or another exchange."""
    return CallSite.of(scenario.cluster, scenario.communication, exchange)


def run(scenario: Scenario, apply_seconds: float = 0.0) -> Trace:
    """Simulates `scenario`. apply_seconds: a server's own work for each average."""
    steps, workers, num_bytes = scenario.steps, scenario.cluster.workers, scenario.gradient_bytes
    period = scenario.policy.steps_per_update
    updates = -(-steps // period)
    drawn = np.zeros((updates, period, workers))
    drawn.reshape(-1, workers)[:steps] = step_seconds(scenario)
    worked = drawn.cumsum(axis=1)
    rows = SpanRows()
    if scenario.servers:
        arrivals, ends, carried = _through_one_server(rows, scenario, worked[:, -1], apply_seconds)
    else:
        calls = call_site(scenario).all_reduces([num_bytes], updates)
        (arrivals,), (ends,) = (times.swapaxes(0, 1) for times in in_sequence(calls, worked[:, -1:]))
        carried = transfers(scenario, [num_bytes], arrivals[:, None])

    begins = np.concatenate([np.zeros((1, workers)), ends[:-1]])[:, None]
    bounds = np.concatenate([begins, begins + worked], axis=1)  # of the local steps
    starts, stops = (bound.reshape(-1, workers)[:steps] for bound in (bounds[:, :-1], bounds[:, 1:]))
    rows.add(SpanKind.COMPUTE, np.arange(workers), np.arange(steps)[:, None], starts, stops)
    last_steps = np.minimum(np.arange(1, updates + 1) * period, steps) - 1
    tell_exchanges(rows, last_steps[:, None], arrivals, ends, arrivals, num_bytes)
    builder = TraceBuilder()
    builder.extend("spans", **rows.columns())
    tell_updates(builder, ends.max(axis=1), workers, period, steps)
    return finished(builder, scenario, carried)


def _through_one_server(
    rows: SpanRows, scenario: Scenario, work: Floats, apply_seconds: float
) -> tuple[Floats, Floats, Transfers]:
    """The times when workers are ready for and have each average, and the transfers. Adds the server's spans to `rows`.

    work: seconds that each worker works before each average, shape (averages, workers).
    """
    workers, num_bytes = scenario.cluster.workers, scenario.gradient_bytes
    ready, began, arrived, answered, pulled = OneServer(scenario).exchanges(work, apply_seconds)
    worker, number = np.arange(workers), np.arange(len(work))[:, None]
    origins, aims = ([f"{side} worker {rank}" for rank in range(workers)] for side in ("from", "to"))
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
