"""What a timeline would draw, read from the figure: lanes, bars, axes, marks, hover."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import timeline
from distsim.figures.theme import APPLY, CATEGORIES, CATEGORY_OF, COMMUNICATION, COMPUTE, WAIT, Look
from distsim.figures.timeline_bars import bars, row_of, rows
from distsim.metrics import summary
from distsim.simulation import simulate
from distsim.speed.floor import scaled_seconds, timeouts_per_second
from distsim.trace import SpanKind, Trace, TraceBuilder
from tests.figures.recorded import tell_all_reduce

MakeTrace = Callable[..., Trace]


def of_name(figure: go.Figure, name: str, panel: int = 1) -> Any:
    """The trace of this name in this panel."""
    axis = "x" if panel == 1 else f"x{panel}"
    (found,) = [trace for trace in figure.data if trace.name == name and (trace.xaxis or "x") == axis]
    return found


def two_workers() -> Trace:
    """One step of two workers around a ring: 30 ms and 50 ms of compute, then 10 ms of all-reduce."""
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 0.03)
    builder.span(1, SpanKind.COMPUTE, 0, 0.0, 0.05)
    tell_all_reduce(builder, 0, [0.03, 0.05], end=0.06)
    table = example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 1}).table()
    return builder.build(workers=2, servers=0, producer="simulated", scenario=table)


def test_every_kind_of_span_has_a_category_with_a_colour_and_a_pattern_of_its_own() -> None:
    assert set(CATEGORY_OF) == set(SpanKind)
    assert len({look.colour for look in CATEGORIES}) == len({look.pattern for look in CATEGORIES}) == len(CATEGORIES)


def test_bars_stand_where_and_when_the_spans_do() -> None:
    figure = timeline(two_workers()).figure
    compute, wait, communication = (of_name(figure, look.name) for look in (COMPUTE, WAIT, COMMUNICATION))
    assert list(compute.base) == [0.0, 0.0]
    assert list(compute.x) == [30.0, 50.0]
    assert list(compute.y) == [0.0, 1.0]
    assert (list(wait.base), list(wait.x), list(wait.y)) == ([30.0], [20.0], [0.0])
    assert (list(communication.base), list(communication.x)) == ([50.0, 50.0], [10.0, 10.0])
    assert list(figure.layout.yaxis.ticktext) == ["worker 0", "worker 1"]
    assert figure.layout.xaxis.title.text == "time (ms)"


def test_each_category_is_one_trace_and_none_relies_on_colour_alone(make_trace: MakeTrace) -> None:
    figure = timeline(make_trace()).figure
    drawn = [trace for trace in figure.data if trace.type == "bar"]
    assert [trace.name for trace in drawn] == [look.name for look in (COMPUTE, COMMUNICATION, WAIT, APPLY)]
    assert len({trace.marker.color for trace in drawn}) == len({trace.marker.pattern.shape for trace in drawn}) == 4


def test_hover_tells_lane_kind_step_times_and_bytes(make_trace: MakeTrace) -> None:
    trace = make_trace()
    communication = of_name(timeline(trace).figure, COMMUNICATION.name)
    for field in ("%{hovertext}", "step %{customdata[0]}", "%{base:.3f}", "%{x:.3f} ms", "%{customdata[1]:.4s}B"):
        assert field in communication.hovertemplate
    first = list(communication.hovertext).index("worker 0: send")
    step, num_bytes = communication.customdata[first]
    assert (step, num_bytes) == (0, 4 * 2**20)
    assert "bytes" not in of_name(timeline(trace).figure, COMPUTE.name).hovertemplate


def test_panels_share_one_time_axis_lanes_and_legend(make_trace: MakeTrace) -> None:
    predicted, measured = make_trace(backups=1), make_trace(backups=1, slower=1.3, producer="measured")
    figure = timeline(predicted, measured).figure
    above, below = figure.layout.xaxis, figure.layout.xaxis2
    assert above.matches == "x2"
    assert above.range == below.range
    assert figure.layout.yaxis.ticktext == figure.layout.yaxis2.ticktext
    assert figure.layout.yaxis.ticktext == ("worker 0", "worker 1", "worker 2", "worker 3", "server 4")
    assert [note.text for note in figure.layout.annotations] == ["<b>simulated</b>", "<b>measured</b>"]
    in_legend = [trace.name for trace in figure.data if trace.showlegend]
    assert len(in_legend) == len(set(in_legend))
    assert {trace.name for trace in figure.data} - set(in_legend) == {APPLY.name}  # half a millisecond of 600
    assert (above.title.text, below.title.text) == (None, "time (ms)")


def test_the_window_is_the_first_ten_updates_of_the_slower_run(make_trace: MakeTrace) -> None:
    fast, slow = make_trace(steps=50), make_trace(steps=50, slower=1.5, producer="measured")
    low, high = timeline(fast, slow).figure.layout.xaxis.range
    times = 1e3 * np.sort(slow.updates.time_seconds)
    assert low == 0.0
    assert times[9] < high < times[10]
    update = of_name(timeline(fast, slow).figure, "update", panel=2)
    assert list(update.x[::3]) == pytest.approx(times[:10])


def test_the_summary_says_which_part_is_drawn_unless_it_is_all(make_trace: MakeTrace) -> None:
    trace = make_trace(steps=50)
    assert timeline(trace, start_seconds=0.25, end_seconds=0.5).summary.endswith(" Drawn: 250 ms to 500 ms.")
    assert " Drawn: 0 s to " in timeline(trace).summary
    assert "Drawn" not in timeline(trace, end_seconds=2.0 * trace.total_seconds).summary
    assert "Drawn" not in timeline(make_trace(steps=5)).summary


def test_the_summary_states_the_error_of_a_prediction_beside_its_measurement(make_trace: MakeTrace) -> None:
    predicted, measured = make_trace(steps=5), make_trace(steps=5, slower=1.3, producer="measured")
    off = 100.0 * (1.0 - predicted.total_seconds / measured.total_seconds)
    told = f" The total of the simulated run is {off:.0f} % below that of the measured run."
    assert timeline(predicted, measured).summary.endswith(told)
    assert "The total" not in timeline(predicted, predicted, measured).summary
    assert "The total" not in timeline(predicted, make_trace(steps=4, producer="measured")).summary
    both = timeline(measured, predicted, measured, names=["first", "model", "second"]).summary
    assert both.count(f"The total of the model run is {off:.0f} % below that of the") == 2


def test_a_window_of_ones_own_shows_what_touches_it_and_nothing_else(make_trace: MakeTrace) -> None:
    trace = make_trace(steps=50)
    start, end = trace.updates.time_seconds[20], trace.updates.time_seconds[30]
    figure = timeline(trace, start_seconds=start, end_seconds=end).figure
    assert figure.layout.xaxis.range == pytest.approx((1e3 * start, 1e3 * end))
    compute = trace.spans.of_kind(SpanKind.COMPUTE)
    touching = ((compute.end_seconds >= start) & (compute.start_seconds <= end)).sum()
    assert len(of_name(figure, COMPUTE.name).x) == touching < len(compute)


def test_a_long_window_is_in_seconds(make_trace: MakeTrace) -> None:
    trace = make_trace(steps=60)
    figure = timeline(trace, end_seconds=trace.total_seconds).figure
    assert figure.layout.xaxis.title.text == "time (s)"
    assert "ms" not in of_name(figure, COMPUTE.name).hovertemplate


def test_dropped_gradients_are_marked_where_their_push_ends(make_trace: MakeTrace) -> None:
    trace = make_trace(backups=1)
    lost = trace.contributions.where(~trace.contributions.applied)
    figure = timeline(trace, end_seconds=trace.spans.end_seconds.max()).figure
    marks = of_name(figure, "dropped gradient")
    assert len(marks.x) == len(lost) > 0
    assert list(marks.y) == lost.worker.tolist()
    sends = trace.spans.of_kind(SpanKind.SEND)
    ends = {(w, s): t for w, s, t in zip(sends.worker, sends.step, sends.end_seconds, strict=True)}
    expected = [1e3 * ends[key] for key in zip(lost.worker, lost.step, strict=True)]
    assert list(marks.x) == pytest.approx(expected)
    assert marks.marker.symbol == "x"
    assert f"{len(lost)} dropped gradients" in timeline(trace).summary


def test_cancelled_gradients_have_a_mark_of_their_own() -> None:
    trace = simulate(example("backup_server").replacing({"policy.cancel": True}))
    marks = of_name(timeline(trace).figure, "cancelled gradient")
    assert marks.marker.symbol == "diamond"
    times = 1e3 * trace.updates.time_seconds
    assert all(np.abs(times - x).min() < 1e-6 for x in marks.x)


def test_receives_of_a_server_that_overlap_are_one_bar_with_all_their_bytes() -> None:
    builder = TraceBuilder()
    builder.push(0, 2, 0, 100.0, 0.010, 0.030)
    builder.push(1, 2, 0, 100.0, 0.020, 0.040)
    builder.push(0, 2, 1, 100.0, 0.040, 0.050)
    builder.pull(0, 2, 0, 100.0, 0.020, 0.025, 0.035)
    builder.update(1, 0.040, server=2)
    table = example("backup_server").replacing({"cluster.workers": 2}).table()
    trace = builder.build(workers=2, servers=1, producer="simulated", scenario=table)
    drawn = bars(trace, 0.0, 1.0)[COMMUNICATION]
    on_server = drawn.middle >= 1.5
    receives = on_server & (drawn.middle == row_of(trace, 2) - 0.5)
    assert drawn.start_seconds[receives].tolist() == [0.010, 0.040]
    assert drawn.end_seconds[receives].tolist() == [0.040, 0.050]
    assert drawn.bytes[receives].tolist() == [200.0, 100.0]
    assert [text for text, own in zip(drawn.text, receives, strict=True) if own] == [
        "server 2: receive (2 at once)",
        "server 2: receive from worker 0",
    ]
    assert (on_server & (drawn.middle == row_of(trace, 2) + 0.5)).sum() == 1
    assert rows(trace) == 4


def test_communication_hidden_behind_compute_takes_the_lower_half_of_the_lane() -> None:
    builder = TraceBuilder()
    builder.span(0, SpanKind.FORWARD, 0, 0.0, 0.01)
    builder.span(0, SpanKind.BACKWARD, 0, 0.01, 0.03)
    builder.span(0, SpanKind.ALL_REDUCE, 0, 0.02, 0.03)
    builder.span(0, SpanKind.ALL_REDUCE, 0, 0.03, 0.05)
    builder.update(1, 0.05)
    table = example("synchronous_ring").table()
    drawn = bars(builder.build(workers=1, servers=0, producer="measured", scenario=table), 0.0, 1.0)
    assert drawn[COMPUTE].height.tolist() == [0.8, 0.8]
    assert drawn[COMMUNICATION].height.tolist() == [0.4, 0.8]
    assert drawn[COMMUNICATION].middle.tolist() == pytest.approx([0.2, 0.0])


def test_sixty_four_workers_build_fast_and_label_lanes_that_fit(make_trace: MakeTrace) -> None:
    trace = make_trace(workers=64, steps=50, backups=4)
    seconds, floor = [], 0.0
    for _ in range(5):
        floor = max(floor, timeouts_per_second())
        start = time.process_time()
        captioned = timeline(trace, end_seconds=trace.total_seconds)
        seconds.append(time.process_time() - start)
    assert scaled_seconds(min(seconds), floor) < 0.1
    ticks = captioned.figure.layout.yaxis
    pixels = captioned.figure.layout.height / (ticks.range[0] - ticks.range[1])
    assert np.diff(np.sort(ticks.tickvals)).min() * pixels >= 13
    assert ticks.ticktext[-1] == "server 64"
    assert len(timeline(trace).figure.to_json()) < 250_000
    stacked = timeline(trace, make_trace(workers=64, steps=50, backups=4, producer="measured")).figure
    assert stacked.layout.height < 1300


def test_sentence_and_table_tell_the_shares_of_each_run(make_trace: MakeTrace) -> None:
    shown = timeline(two_workers(), make_trace(producer="measured"))
    first = shown.table[0]
    assert (first["run"], first["updates"], first["total (s)"]) == ("simulated", 1, pytest.approx(0.06))
    parts = [float(first[f"{part} (%)"] or 0.0) for part in ("compute", "communication", "waiting")]
    assert parts == pytest.approx([100 * 80 / 120, 100 * 20 / 120, 100 * 20 / 120])
    assert shown.summary.startswith("Simulated: 1 update in 0.06 s, of which an average worker computes 67 %")
    assert "Measured: 12 updates" in shown.summary


def test_runs_of_one_producer_are_numbered_and_names_can_be_given(make_trace: MakeTrace) -> None:
    one, other = make_trace(), make_trace(backups=1)
    assert [row["run"] for row in timeline(one, other).table] == ["simulated 1", "simulated 2"]
    assert [row["run"] for row in timeline(one, other, names=["a", "b"]).table] == ["a", "b"]


def test_what_cannot_be_drawn_is_refused(make_trace: MakeTrace) -> None:
    trace = make_trace()
    with pytest.raises(InputError, match="nothing to draw"):
        timeline()
    with pytest.raises(InputError, match="must end after it starts"):
        timeline(trace, start_seconds=0.3, end_seconds=0.2)
    with pytest.raises(InputError, match="must name each of the 1 traces"):
        timeline(trace, names=["a", "b"])


def test_a_run_without_updates_is_drawn_all_the_same() -> None:
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 0.03)
    table = example("synchronous_ring").table()
    trace = builder.build(workers=1, servers=0, producer="measured", scenario=table)
    assert [drawn.name for drawn in timeline(trace).figure.data] == [COMPUTE.name]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("synchronous_ring", {}),
        ("backup_server", {}),
        ("backup_server", {"policy": {"kind": "asynchronous"}}),
        ("synchronous_ring", {"policy": {"kind": "ddp", "bucket": "1 MiB"}}),
    ],
)
def test_what_is_drawn_sums_to_the_shares_of_the_metrics(name: str, changes: dict[str, Any]) -> None:
    trace = simulate(example(name).replacing({"steps": 10, **changes}))
    total, found = trace.total_seconds, summary(trace)
    figure = timeline(trace, end_seconds=min(10 * total, 2.9)).figure  # so its axis is in ms

    def share(*looks: Look) -> float:
        """Of the workers' time: where at least one bar of these is drawn in the worker's lane."""
        covered = 0.0
        drawn = [of_name(figure, look.name) for look in looks]
        for worker in range(trace.workers):
            until = 0.0
            for start, length in sorted(
                (base, x)
                for bar in drawn
                for base, x, y in zip(bar.base, bar.x, bar.y, strict=True)
                if abs(y - worker) < 0.5
            ):
                end = min(start + length, 1e3 * total)
                covered += max(end - max(start, until), 0.0)
                until = max(until, end)
        return covered / (1e3 * total * trace.workers)

    assert figure.layout.xaxis.title.text == "time (ms)"
    compute, busy = share(COMPUTE), share(COMPUTE, COMMUNICATION)
    assert busy - compute == pytest.approx(found.exposed_communication_share, abs=1e-4)
    assert 1.0 - busy == pytest.approx(found.idle_share, abs=1e-4)
    (row,) = timeline(trace).table
    assert (row["communication (%)"], row["waiting (%)"]) == pytest.approx(
        (100 * found.exposed_communication_share, 100 * found.idle_share)
    )


def test_the_legend_names_no_colour_that_is_too_short_to_be_seen() -> None:
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 0.05)
    builder.span(0, SpanKind.WAIT, 0, 0.05, 0.05001)
    builder.span(1, SpanKind.COMPUTE, 0, 0.0, 0.05)
    tell_all_reduce(builder, 0, [0.05001, 0.05], end=0.06)
    table = example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 1}).table()
    figure = timeline(builder.build(workers=2, servers=0, producer="simulated", scenario=table)).figure
    assert not of_name(figure, WAIT.name).showlegend
    assert of_name(figure, COMPUTE.name).showlegend


def test_updates_that_no_worker_waits_for_are_ticks_above_the_lanes() -> None:
    waited = example("backup_server").replacing({"steps": 8})
    for policy, through in (({"kind": "synchronous"}, True), ({"kind": "asynchronous"}, False)):
        update = of_name(timeline(simulate(waited.replacing({"policy": policy}))).figure, "update")
        assert (np.nanmax(update.y) > 1.0) == through
