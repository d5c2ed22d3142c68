"""The records of all ranks become one trace, on a clock whose 0 is the moment the last rank left the start barrier.

A backend's own all-reduce shows no transfers, so none are recorded. `merge_server` has what is told of workers and a
server.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import distsim
from distsim.policies import FlexRR
from distsim.runtime import audit
from distsim.runtime.merge_flexrr import FlexRRMerge
from distsim.runtime.merge_server import ServerMerge
from distsim.runtime.recorder import Record, load
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


def merge(folder: Path, number: int, scenario: Scenario) -> Trace:
    """The trace of scenario number `number`, of which every rank has left a record in `folder`."""
    records = [load(folder, number, rank) for rank in range(scenario.ranks)]
    left = [float(record.facts["left_barrier"]) for record in records]
    if scenario.servers:
        told = (FlexRRMerge if isinstance(scenario.policy, FlexRR) else ServerMerge)(records, scenario, max(left))
        builder = told.merge()
    else:
        builder = _peers(records, max(left))
    facts = records[0].facts
    trace = builder.build(
        workers=scenario.cluster.workers,
        servers=len(scenario.servers),
        producer="measured",
        scenario=scenario.table(),
        seed=scenario.seed,
        versions=facts["versions"] | {"distsim": distsim.__version__},
        host=facts["host"],
        clock=_clock(left),
    )
    if scenario.servers:
        audit.check(trace, records, told.left_out)
    if scenario.servers and isinstance(told, FlexRRMerge):
        trace = told.by_ranges(trace)
    return trace


def _clock(left: list[float]) -> dict[str, Any]:
    """What is known about the clock; the ranks of one host share it, so nothing had to be estimated."""
    return {
        "source": "monotonic clock of one host",
        "resolution_seconds": time.get_clock_info("monotonic").resolution,
        "uncertainty_seconds": 0.0,
        "start_spread_seconds": max(left) - min(left),
    }


def _peers(records: list[Record], zero: float) -> TraceBuilder:
    builder = TraceBuilder()
    for worker, record in enumerate(records):
        for step, _version, start, end in record.rows("computes"):
            builder.span(worker, SpanKind.COMPUTE, int(step), start - zero, end - zero)
    num_bytes = float(records[0].facts["num_bytes"])
    for rows in zip(*(record.rows("all_reduces") for record in records), strict=True):
        arrivals, ends = [row[1] - zero for row in rows], [row[2] - zero for row in rows]
        # Nobody can have the sum before the last has arrived, except by the noise of reading clocks.
        ends = [max(end, max(arrivals)) for end in ends]
        builder.all_reduce(int(rows[0][0]), num_bytes, arrivals, ends)
    return builder
