"""The invariants of every trace, simulated or measured. Tests check them; use them also when a run looks odd."""

from __future__ import annotations

import numpy as np

from distsim.cluster import LinkName
from distsim.trace.tables import COMPUTE_KINDS, FOR_ANOTHER, SpanKind, Transfers
from distsim.trace.trace import Trace

CLOCK_SECONDS = 1e-9  # slack for the rounding of sums of times


def violations(trace: Trace) -> list[str]:
    """One sentence for each invariant that does not hold; empty for a sound trace.

    Spans of one worker's compute never overlap; nothing ends before it starts; versions of a server count 1, 2, 3, …
    in the order of time; no gradient goes into an update older than what it read; a worker's step yields one
    gradient per server and item at most. For simulated traces also: no link carries more than bandwidth x time.
    """
    found = [*_spans(trace), *_updates(trace), *_contributions(trace), *_transfers(trace)]
    if trace.producer == "simulated" and not found:
        found += _links(trace)
    return found


def _spans(trace: Trace) -> list[str]:
    spans = trace.spans
    found = []
    if (spans.end_seconds < spans.start_seconds).any():
        found.append("a span ends before it starts")
    if len(spans) and spans.start_seconds.min() < -CLOCK_SECONDS and trace.producer == "simulated":
        found.append("a span starts before the clock")
    compute = spans.of_kind(*COMPUTE_KINDS)
    for worker in np.unique(compute.worker):
        own = compute.where(compute.worker == worker)
        order = np.argsort(own.start_seconds, kind="stable")
        if (own.start_seconds[order][1:] < own.end_seconds[order][:-1] - CLOCK_SECONDS).any():
            found.append(f"compute spans of worker {worker} overlap")
    return found


def _updates(trace: Trace) -> list[str]:
    updates = trace.updates
    found = []
    for server in np.unique(updates.server):
        own = updates.where(updates.server == server)
        order = np.argsort(own.version, kind="stable")
        if (own.version[order] != np.arange(1, len(own) + 1)).any():
            found.append(f"the versions of server {server} do not count 1, 2, 3, …")
        if (np.diff(own.time_seconds[order]) < 0).any():
            found.append(f"the versions of server {server} go backwards in time")
    return found


def _contributions(trace: Trace) -> list[str]:
    contributions = trace.contributions
    found = []
    if (contributions.staleness < 0).any():
        found.append("a gradient went into an update that is not newer than the parameters it was computed on")
    if (contributions.applied & contributions.cancelled).any():
        found.append("a gradient is both applied and cancelled")
    keys = np.stack(
        [contributions.server, contributions.worker, contributions.step, contributions.first_item], axis=1
    )  # fmt: skip
    if len(np.unique(keys, axis=0)) != len(keys):
        found.append("a step of a worker yields two gradients")
    return found + _causes(trace)


def _causes(trace: Trace) -> list[str]:
    """Checks that no effect precedes its cause: a gradient is applied after its worker has computed it."""
    contributions = trace.contributions.where(trace.contributions.applied)
    compute = trace.spans.of_kind(SpanKind.COMPUTE, SpanKind.BACKWARD)
    compute = compute.where(~np.char.startswith(compute.label, FOR_ANOTHER))
    end = {
        (w, s): t
        for w, s, t in zip(compute.worker.tolist(), compute.step.tolist(), compute.end_seconds.tolist(), strict=True)
    }
    applied = {
        (server, version): time
        for server, version, time in zip(
            trace.updates.server.tolist(),
            trace.updates.version.tolist(),
            trace.updates.time_seconds.tolist(),
            strict=True,
        )
    }
    rows = zip(
        contributions.server.tolist(), contributions.version.tolist(), contributions.worker.tolist(),
        contributions.step.tolist(), strict=True,
    )  # fmt: skip
    for server, version, worker, step in rows:
        if (server, version) not in applied:
            return [f"a gradient of worker {worker} went into version {version}, which no update made"]
        if (worker, step) in end and end[worker, step] > applied[server, version] + CLOCK_SECONDS:
            return [f"worker {worker}'s gradient of step {step} is applied before it is computed"]
    return []


def _transfers(trace: Trace) -> list[str]:
    transfers = trace.transfers
    found = []
    if (transfers.end_seconds < transfers.start_seconds).any():
        found.append("a transfer ends before it starts")
    if (transfers.bytes < 0).any():
        found.append("a transfer carries less than nothing")
    if (transfers.source == transfers.target).any():
        found.append("a transfer stays on its host")
    return found


def _links(trace: Trace) -> list[str]:
    scenario = trace.scenario
    transfers = trace.transfers
    ways = np.stack([transfers.source, transfers.target], axis=1)
    crossing: dict[LinkName, list[int]] = {}
    for row, (source, target) in enumerate(ways.tolist()):
        for link in scenario.cluster.route(scenario.host(source), scenario.host(target))[0]:
            crossing.setdefault(link, []).append(row)
    capacities = scenario.cluster.capacities(scenario.hosts)
    return [
        f"the {link[0]}-link of host {link[1]} carries more than bandwidth x time"
        for link, rows in crossing.items()
        if _overloaded(transfers.where(np.array(rows)), capacities[link])
    ]


def _overloaded(transfers: Transfers, bytes_per_second: float) -> bool:
    """Whether in some interval more bytes begin and end than the link can carry in that interval."""
    own = transfers.where(np.argsort(transfers.start_seconds, kind="stable"))
    # Two busy periods with an idle time between them are overloaded together only if one of them is overloaded.
    idle = own.start_seconds[1:] >= np.maximum.accumulate(own.end_seconds)[:-1]
    for period in np.split(np.arange(len(own)), np.flatnonzero(idle) + 1):
        by_end = period[np.argsort(own.end_seconds[period], kind="stable")]
        for first in period:
            within = by_end[by_end >= first]
            seconds = own.end_seconds[within] - own.start_seconds[first]
            possible = bytes_per_second * (seconds + CLOCK_SECONDS) * (1 + 1e-9)
            if (np.cumsum(own.bytes[within]) > possible).any():
                return True
    return False
