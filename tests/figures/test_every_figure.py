"""What holds for every figure of a trace: whoever made it, of one worker and of 256, and where there is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from distsim.collectives import ring
from distsim.examples import example
from distsim.figures import (
    Captioned,
    collective,
    overlap,
    pipeline,
    ring_against_server,
    sequence,
    staleness,
    stragglers,
    timeline,
    traffic,
    utilization,
)
from distsim.simulation import simulate
from distsim.theory.stragglers import worker_times
from distsim.trace import Trace, TraceBuilder

GRADIENT = example("synchronous_ring").gradient_bytes
OF_A_TRACE: dict[str, Callable[[Trace], Captioned]] = {
    "timeline": lambda trace: timeline(trace),
    "sequence": lambda trace: sequence(trace, range(1)),
    "traffic": traffic,
    "utilization": utilization,
    "ring against server": lambda trace: ring_against_server(GRADIENT, [2, 4], [trace]),
    "staleness": staleness,
    "stragglers": lambda trace: stragglers(worker_times(trace.scenario.compute, trace.workers), trace),
    "pipeline": pipeline,
    "overlap": overlap,
}
SAID_OF_NOTHING = ("nothing is drawn", "no bytes are drawn", "no gradient was applied", "was recorded")


def run(name: str, workers: int) -> Trace:
    """A short run of the kind that the figure is about."""
    changes: dict[str, Any] = {"cluster.workers": workers, "steps": 2, "compute": {"mean": "50 ms"}}
    if name == "pipeline":
        changes |= {"policy": {"kind": "pipeline", "micro_batches": 2}, "workload.activation": "1 MiB"}
    if name == "overlap":
        changes["policy"] = {"kind": "ddp", "bucket": "1 MiB"}
    server = name in ("timeline", "sequence", "staleness")
    changes |= {"policy": {"kind": "asynchronous"}} if server else {}
    return simulate(example("backup_server" if server else "synchronous_ring").replacing(changes))


@pytest.mark.parametrize("workers", [1, 4, 256])
@pytest.mark.parametrize("producer", ["simulated", "measured"])
@pytest.mark.parametrize("name", OF_A_TRACE)
def test_a_figure_draws_tells_and_tabulates_and_changes_nothing(name: str, producer: str, workers: int) -> None:
    trace = run(name, workers)
    trace = replace(trace, metadata=trace.metadata | {"producer": producer})
    before = trace.spans.columns()["start_seconds"].copy()
    shown = OF_A_TRACE[name](trace)
    assert shown.figure.layout.template.layout.font.family.startswith("Open Sans")
    # A ring of one worker sends nothing.
    assert len(shown.figure.data) > 0 or workers == 1
    assert shown.summary.endswith(".")
    assert any(letter.isdigit() for letter in shown.summary) or workers == 1
    assert all(isinstance(value, (str, float, int, type(None))) for row in shown.table for value in row.values())
    assert len({tuple(row) for row in shown.table}) <= 1
    assert json.loads(shown.figure.to_json())
    assert OF_A_TRACE[name](trace).figure.to_json() == shown.figure.to_json()
    assert (trace.spans.start_seconds == before).all()


@pytest.mark.parametrize("name", [name for name in OF_A_TRACE if name != "ring against server"])
def test_nothing_is_told_where_nothing_was_recorded(name: str) -> None:
    table = example("synchronous_ring").table()
    shown = OF_A_TRACE[name](TraceBuilder().build(workers=4, servers=0, producer="measured", scenario=table))
    assert any(said in shown.summary for said in SAID_OF_NOTHING)


def test_every_axis_that_is_drawn_has_a_title_or_names() -> None:
    for name, figure in OF_A_TRACE.items():
        layout = figure(run(name, 4)).figure.to_plotly_json()["layout"]
        titled = [axis for axis in layout if axis.startswith(("xaxis", "yaxis")) and layout[axis].get("title")]
        named = [axis for axis in layout if axis.startswith(("xaxis", "yaxis")) and "ticktext" in layout[axis]]
        assert any(axis.startswith("xaxis") for axis in [*titled, *named]), name
        assert any(axis.startswith("yaxis") for axis in [*titled, *named]), name
    assert collective(ring(2)).figure.layout.xaxis.visible is False
