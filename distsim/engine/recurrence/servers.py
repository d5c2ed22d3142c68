"""Several servers that wait for all, each with its part of the parameters, on hosts of their own or on workers'.

Servers on hosts of their own are alike, and see equal parts of every worker's NIC: what one does, all do. Those on
workers' hosts are in each other's way, and `colocated` follows them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distsim.engine.recurrence import colocated
from distsim.engine.recurrence.rows import Floats, SpanRows, drawn_seconds, finished
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
    return Moments(ready - drawn, ready, *of_each)


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
        "updates", version=by_time // count + 1, server=server[by_time % count, 0], time_seconds=updates.ravel()[by_time]
    )
    order = np.argsort(arrived, axis=2, kind="stable")  # ties by rank
    every = [np.broadcast_to(values, arrived.shape).ravel() for values in (step, server, order)]
    builder.extend(
        "contributions", version=every[0] + 1, server=every[1], worker=every[2], step=every[0], read_version=every[0],
        first_item=0, items=1, applied=True, cancelled=False,
    )  # fmt: skip
    sent = np.flatnonzero(away)
    ways = ((worker, server, began, arrived), (server, worker, answered, pulled))
    sources, targets, starts, ends = (
        np.concatenate([np.broadcast_to(way[part], arrived.shape).ravel()[sent] for way in ways]) for part in range(4)
    )
    carried = Transfers(sources, targets, *(np.broadcast_to(value, starts.shape) for value in (num_bytes,)), starts, ends,
        *(np.broadcast_to(value, starts.shape) for value in (0, NO_COLLECTIVE)))  # fmt: skip
    return finished(builder, scenario, carried)
