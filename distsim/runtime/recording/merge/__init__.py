"""Merges the records of all ranks into one trace, whose clock starts when the last rank leaves the start barrier.

There is a module for each kind of role: workers with servers, peers, DDP, programs, pipelines, FlexRR.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import distsim
from distsim.policies import Ddp, FlexRR, Pipeline, Programmed
from distsim.runtime.recording import audit
from distsim.runtime.recording.merge.ddp import DdpMerge
from distsim.runtime.recording.merge.failures import load_joined, with_pauses
from distsim.runtime.recording.merge.flexrr import FlexRRMerge
from distsim.runtime.recording.merge.losses import losses
from distsim.runtime.recording.merge.peers import PeersMerge
from distsim.runtime.recording.merge.pipeline import PipelineMerge
from distsim.runtime.recording.merge.program import ProgramMerge
from distsim.runtime.recording.merge.server import ServerMerge
from distsim.runtime.recording.recorder import Record, load
from distsim.runtime.roles import roles
from distsim.scenario import Scenario
from distsim.trace import Trace, TraceBuilder


def merge(folder: Path, number: int, scenario: Scenario) -> Trace:
    """The trace of scenario number `number`. Every rank has left a record in `folder`."""
    ranks = len(roles(scenario))
    if scenario.failures is None:
        records = [load(folder, number, rank) for rank in range(ranks)]
    else:
        records = load_joined(folder, number, ranks)
    left = [float(record.facts["left_barrier"]) for record in records]
    told = _with_server(records, scenario, max(left)) if scenario.server_decides else None
    builder = _among_peers(records, scenario, max(left)) if told is None else told.merge()
    facts = records[0].facts
    trace = builder.build(
        workers=scenario.cluster.workers,
        servers=len(scenario.servers),
        producer="measured",
        scenario=scenario.table(),
        seed=scenario.seed,
        versions=facts["versions"] | {"distsim": distsim.__version__},
        host=facts["host"],
        clock=_clock(left, records),
        **(_exchange_work(records) if told is None else _warm_up(records, scenario)),
    )
    learned = losses(trace, records[: scenario.cluster.workers])
    trace = replace(trace, metadata=trace.metadata | learned | _held(records))
    if scenario.failures is not None:
        return with_pauses(trace, records, max(left))  # the counts of a rank are lost when it fails
    audit.check_messages(trace, records, {} if told is None else told.left_out)
    if told is None:
        audit.check_all_reduces(trace, records)
        return trace
    audit.check_gradients(trace, records)
    return told.completed(trace)


def _with_server(records: list[Record], scenario: Scenario, zero: float) -> ServerMerge:
    return (FlexRRMerge if isinstance(scenario.policy, FlexRR) else ServerMerge)(records, scenario, zero)


def _among_peers(records: list[Record], scenario: Scenario, zero: float) -> TraceBuilder:
    """All rows of the trace. zero: when its clock starts."""
    match scenario.policy:
        case Ddp():
            return DdpMerge(records, scenario, zero).builder
        case Programmed():
            return ProgramMerge(records, scenario, zero).builder
        case Pipeline():
            return PipelineMerge(records, scenario, zero).builder
    return PeersMerge(records, scenario, zero).builder


def _warm_up(records: list[Record], scenario: Scenario) -> dict[str, Any]:
    """The seconds of the servers' own work for an update, measured before the run."""
    applies = [records[server].facts["apply_seconds"] for server in scenario.servers]
    return {"warm_up": {"apply_seconds": median(applies)}}


def _exchange_work(records: list[Record]) -> dict[str, Any]:
    """The core-seconds of each all-reduce, the mean over its ranks."""
    of_ranks = [[seconds for _, seconds in record.rows("exchange_work")] for record in records]
    worked = [own for own in of_ranks if own]
    return {"exchange_core_seconds": [sum(own) / len(own) for own in zip(*worked, strict=True)]} if worked else {}


def _held(records: list[Record]) -> dict[str, Any]:
    """The most bytes of each kind that each worker held at once, where the policy tells."""
    told = [record.facts["held_bytes"] for record in records if "held_bytes" in record.facts]
    return {"held_bytes": {kind: [own[kind] for own in told] for kind in told[0]}} if told else {}


def _clock(left: list[float], records: list[Record]) -> dict[str, Any]:
    """Facts about the clock. The ranks of one host share its clock, so nothing is estimated."""
    uncertainty = max(record.facts["clock"]["uncertainty_seconds"] for record in records)
    one = "monotonic clock of one host"
    return {
        "source": one if uncertainty == 0.0 else "monotonic clock of rank 0's host, the others' by ping-pong with it",
        "resolution_seconds": time.get_clock_info("monotonic").resolution,
        "uncertainty_seconds": uncertainty,
        "start_spread_seconds": max(left) - min(left),
    }
