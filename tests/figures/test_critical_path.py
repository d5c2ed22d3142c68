"""What the critical path's figure would draw: the chain in its lanes, everything else faded, shares of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.critical_path import critical_path as path_of
from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import critical_path, timeline
from distsim.figures.critical_path import FADED
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, TraceBuilder
from tests.figures.recorded import tell_all_reduce


def by_hand() -> Trace:
    """Two workers around a ring: worker 1 is late in the first step, worker 0 in the second."""
    builder = TraceBuilder()
    for step, (start, ends, end) in enumerate([(0.0, [0.03, 0.05], 0.06), (0.06, [0.10, 0.08], 0.11)]):
        for worker in (0, 1):
            builder.span(worker, SpanKind.COMPUTE, step, start, ends[worker])
        tell_all_reduce(builder, step, ends, end)
    table = example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 2}).table()
    return builder.build(workers=2, servers=0, producer="simulated", scenario=table)


def bright(figure: go.Figure) -> list[Any]:
    """The bars of the path."""
    return [one for one in figure.data if one.type == "bar" and one.opacity is None]


def test_the_chain_goes_from_the_late_worker_to_the_late_worker() -> None:
    figure = critical_path(by_hand()).figure
    (chain,) = [one for one in figure.data if one.name == "critical path"]
    assert list(chain.x) == pytest.approx([0, 50, 50, 60, 60, 100, 100, 110])
    assert list(chain.y) == [1, 1, 0, 0, 0, 0, 0, 0]  # its own all-reduce is what worker 0 waits for


def test_the_path_stands_out_where_the_timeline_has_it_and_the_rest_is_faded() -> None:
    trace = by_hand()
    figure = critical_path(trace).figure
    path = path_of(trace).spans
    of_path = sorted((base, y) for bar in bright(figure) for base, y in zip(bar.base, bar.y, strict=True))
    rounded = np.round(1e3 * path.start_seconds, 4)
    assert of_path == sorted(zip(rounded.tolist(), path.worker.tolist(), strict=True))
    faded = [one for one in figure.data if one.type == "bar" and one.opacity is not None]
    assert {one.opacity for one in faded} == {FADED}
    whole = [one for one in timeline(trace).figure.data if one.type == "bar"]
    assert [list(one.base) for one in faded] == [list(one.base) for one in whole]
    assert min(bar.marker.line.width for bar in bright(figure)) > max(bar.marker.line.width for bar in faded)


def test_a_legend_names_each_category_once_and_as_it_looks_on_the_path() -> None:
    figure = critical_path(simulate(example("backup_server"))).figure
    named = [one for one in figure.data if one.showlegend is not False]
    assert len({one.name for one in named}) == len(named)
    assert {one.name for one in bright(figure)} <= {one.name for one in named if one.opacity is None}
    assert "wait" in {one.name for one in named}


@pytest.mark.parametrize("name", ["backup_server", "synchronous_ring"])
def test_shares_are_those_of_the_path_and_sum_to_all_of_it(name: str) -> None:
    trace = simulate(example(name))
    shown, path = critical_path(trace), path_of(trace)
    assert sum(row["share of the path (%)"] for row in shown.table) == pytest.approx(100.0)
    by_kind = {SpanKind[kind.upper()].words: seconds for kind, seconds in path.seconds_by_kind().items()}
    assert {row["kind"]: row["time (ms)"] / 1e3 for row in shown.table} == pytest.approx(by_kind)
    assert sum(row["time (ms)"] for row in shown.table) == pytest.approx(1e3 * trace.total_seconds)
    assert sum(row["spans"] for row in shown.table) == len(path.spans)
    for row in shown.table:
        assert f"{row['kind']} {row['share of the path (%)']:.0f} %" in shown.summary


def test_time_that_no_span_explains_has_a_row_of_its_own() -> None:
    trace = by_hand()
    later = trace.spans.columns() | {"start_seconds": np.where(trace.spans.step == 1, 0.07, trace.spans.start_seconds)}
    gap = Trace(type(trace.spans)(**later), trace.updates, trace.contributions, trace.transfers, trace.metadata)
    row = critical_path(gap).table[-1]
    assert row["kind"] == "between spans"
    assert row["time (ms)"] == pytest.approx(10.0)


def test_a_part_can_be_drawn_and_the_sentence_still_tells_all() -> None:
    trace = simulate(example("backup_server"))
    part, whole = critical_path(trace, 1.0, 1.5), critical_path(trace, 0.0, 10.0)
    assert part.figure.layout.xaxis.range == pytest.approx((1000.0, 1500.0))
    assert part.summary == f"{whole.summary} Drawn: 1 s to 1.5 s."
    assert part.table == whole.table
    with pytest.raises(InputError, match=r"critical_path\(start_seconds, end_seconds\)"):
        critical_path(trace, 1.0, 1.0)
