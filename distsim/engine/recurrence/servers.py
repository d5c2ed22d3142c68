"""Several servers that wait for all, each with its part of the parameters, on hosts of their own or on workers'.

Servers on hosts of their own are alike, and see equal parts of every worker's NIC: what one does, all do. Those on
workers' hosts are in each other's way, and `colocated` follows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Floats
from distsim.engine.recurrence import colocated
from distsim.engine.recurrence.rows import SpanRows, drawn_seconds, finished
from distsim.engine.recurrence.server import OneServer
from distsim.scenario import Scenario
from distsim.trace import NO_COLLECTIVE, SpanKind, Trace, TraceBuilder, Transfers


def cannot(scenario: Scenario) -> str | None:
    """What of `scenario`, whose servers wait for all, has no recurrence here; None where there is one."""
    if scenario.cluster.nodes is not None:
        return "cluster.nodes"
    if not scenario.communication.colocated:
        return None
    if scenario.receive == "fifo":
        return 'communication.colocated = true and receive = "fifo"'
    groups = colocated.kinds(scenario)
    if groups is None:
        return "communication.colocated = true and times that are drawn"
    if len(groups) > colocated.MOST_KINDS:
        return f"communication.colocated = true and workers of {len(groups)} kinds"
    return None


@dataclass(frozen=True)
class Moments:
    """When workers start and are ready, shape (steps, workers); and by server, (steps, servers, workers), the rest.

    began, arrived: of a gradient. answered, pulled: when parameters leave the server, and are there.
    """

    start: Floats
    ready: Floats
    began: Floats
    arrived: Floats
    answered: Floats
    pulled: Floats


def run(scenario: Scenario, apply_seconds: float) -> Trace:
    """Works `scenario` out. apply_seconds: each server's own work for each update."""
    find = _at_home if scenario.communication.colocated else _apart
    return _trace(scenario, find(scenario, apply_seconds), apply_seconds)


def _apart(scenario: Scenario, apply_seconds: float) -> Moments:
    """Of servers on hosts of their own."""
    drawn, servers = drawn_seconds(scenario), len(scenario.servers)
    ready, began, arrived, answered, pulled = OneServer(scenario).exchanges(drawn, apply_seconds)
    shape = (len(drawn), servers, drawn.shape[1])
    of_each = (np.broadcast_to(times[:, None], shape) for times in (began, arrived, answered, pulled))
    return Moments(np.concatenate([np.zeros((1, drawn.shape[1])), pulled[:-1]]), ready, *of_each)


def _at_home(scenario: Scenario, apply_seconds: float) -> Moments:
    """Of servers on workers' hosts."""
    start, ready, arrived, answered, pulled = colocated.moments(scenario, drawn_seconds(scenario), apply_seconds)
    return Moments(start, ready, np.broadcast_to(ready[:, None], arrived.shape), arrived, answered, pulled)


def _trace(scenario: Scenario, moments: Moments, apply_seconds: float) -> Trace:
    """All there is to tell. What a worker exchanges with its own host's server neither is sent nor takes time."""
    steps, count, workers = moments.arrived.shape
    num_bytes = scenario.gradient_bytes / count
    worker, server, step = np.arange(workers), np.array(scenario.servers)[:, None], np.arange(steps)[:, None, None]
    hosts = np.array([scenario.host(rank) for rank in scenario.servers])[:, None]
    away = np.broadcast_to(worker != hosts, moments.arrived.shape)
    began, arrived, answered, pulled = moments.began, moments.arrived, moments.answered, moments.pulled
    ready = np.broadcast_to(moments.ready[:, None], arrived.shape)
    updates = answered.min(axis=2)  # all are answered at once

    rows = SpanRows()
    origins, aims = ([f"{way} worker {rank}" for rank in range(workers)] for way in ("from", "to"))
    rows.add(SpanKind.COMPUTE, worker, step[:, 0], moments.start, moments.ready)
    rows.add(SpanKind.SEND, worker, step, ready, arrived, num_bytes, where=away)
    rows.add(SpanKind.RECEIVE, server, step, began, arrived, num_bytes, (worker, origins), where=away)
    rows.add_waits(worker, step, arrived, answered)
    if apply_seconds > 0.0:
        rows.add(SpanKind.APPLY, server[:, 0], step[:, 0], updates - apply_seconds, updates)
    rows.add(SpanKind.RECEIVE, worker, step, answered, pulled, num_bytes, where=away)
    rows.add(SpanKind.SEND, server, step, answered, pulled, num_bytes, (worker, aims), where=away)

    builder = TraceBuilder()
    builder.extend("spans", **rows.columns())
    by_time = np.argsort(updates, axis=None, kind="stable")
    builder.extend(
        "updates",
        version=by_time // count + 1,
        server=server[by_time % count, 0],
        time_seconds=updates.ravel()[by_time],
    )
    order = np.argsort(arrived, axis=2, kind="stable")  # ties by rank
    of_step, of_server, of_worker = (_spread(values, arrived.shape) for values in (step, server, order))
    builder.extend(
        "contributions", version=of_step + 1, server=of_server, worker=of_worker, step=of_step, read_version=of_step,
        first_item=0, items=1, applied=True, cancelled=False,
    )  # fmt: skip
    pushes, pulls = (worker, server, num_bytes, began, arrived), (server, worker, num_bytes, answered, pulled)
    columns = [
        np.concatenate([_spread(values, away.shape)[away.ravel()] for values in both])
        for both in zip(*((*way, 0, NO_COLLECTIVE) for way in (pushes, pulls)), strict=True)
    ]
    return finished(builder, scenario, Transfers(*columns))


def _spread(values: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.broadcast_to(values, shape).ravel()
