"""What a sequence diagram draws, read from the figure: lifelines, arrows with bytes and versions, bars, updates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import sequence
from distsim.figures.sequence_messages import messages, places
from distsim.figures.theme import COMMUNICATION, COMPUTE, WAIT
from distsim.metrics import worker_seconds
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, TraceBuilder
from tests.figures.recorded import tell_all_reduce

MakeTrace = Callable[..., Trace]
PLACES = np.array([0.0, 1.0, 3.0, 2.0])  # of three workers and their server


def run(kind: str, workers: int = 3, steps: int = 6) -> Trace:
    """Training of three workers with one server, as in the pictures of article 001_89f59768a5196126.txt."""
    changes = {"cluster.workers": workers, "policy": {"kind": kind}, "steps": steps, "cluster.bandwidth": "4 Gbit/s"}
    return simulate(example("backup_server").replacing(changes))


def of_name(figure: go.Figure, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def arrows(figure: go.Figure, name: str) -> list[tuple[float, float, float, float]]:
    """(x, y) of each arrow's begin and end, in the order of their begins. Arrows of each version are a trace."""
    return sorted(
        (
            (drawn.x[row], drawn.y[row], drawn.x[row + 1], drawn.y[row + 1])
            for drawn in figure.data
            if drawn.name == name and drawn.x[0] is not None  # not the key in the legend
            for row in range(0, len(drawn.x), 3)
        ),
        key=lambda arrow: (arrow[1], arrow[0]),
    )


def test_the_server_stands_in_the_middle() -> None:
    figure = sequence(run("synchronous")).figure
    assert list(figure.layout.xaxis.ticktext) == ["worker 0", "worker 1", "server 3", "worker 2"]
    assert list(figure.layout.xaxis.tickvals) == [0, 1, 2, 3]
    assert figure.layout.yaxis.title.text == "time (ms)"
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1] == 0.0


@pytest.mark.parametrize("kind", ["synchronous", "asynchronous"])
def test_every_message_of_the_window_is_an_arrow_from_its_start_to_its_end(kind: str) -> None:
    trace = run(kind)
    figure = sequence(trace).figure
    transfers = trace.transfers
    inside = transfers.where(transfers.start_seconds < trace.spans.end_seconds[trace.spans.step < 2].max())
    for name, rows in (("push", inside.target == 3), ("answer", inside.source == 3)):
        own = inside.where(rows)
        worker = own.source if name == "push" else own.target
        times = zip((1e3 * own.start_seconds).tolist(), (1e3 * own.end_seconds).tolist(), strict=True)
        expected = sorted((at, begin, end) for at, (begin, end) in zip(PLACES[worker], times, strict=True))
        found = []
        for begin_x, begin, end_x, end in arrows(figure, name):
            at_worker, at_server = (begin_x, end_x) if name == "push" else (end_x, begin_x)
            assert at_server == pytest.approx(PLACES[3], abs=0.1)
            found.append((round(at_worker), begin, end))
        assert np.array(sorted(found)) == pytest.approx(np.array(expected))
        drawn = [one for one in figure.data if one.name == name and one.x[0] is not None]
        assert sorted(np.concatenate([one.customdata[::3] for one in drawn])) == sorted(own.bytes)
        assert all(list(one.marker["size"][:3]) == [0, 11, 0] for one in drawn)


def test_a_version_has_one_colour_and_its_neighbours_have_others() -> None:
    trace = run("asynchronous")
    figure = sequence(trace).figure
    told = messages(trace, 0.0, trace.total_seconds)
    update = of_name(figure, "update")
    colours = dict(zip(map(int, update.text), update.marker.color, strict=True))
    assert all(colours[version] != colours[version + 1] for version in list(colours)[:-1])
    for kind in ("push", "answer"):
        begins = dict(zip(1e3 * told[kind].transfers.start_seconds, told[kind].version, strict=True))
        for drawn in figure.data:
            if drawn.name == kind and drawn.x[0] is not None:
                versions = {begins[begin] for begin in drawn.y[::3]}
                assert {colours.get(version, drawn.line.color) for version in versions - {None}} <= {drawn.line.color}


def test_strips_show_when_the_servers_link_is_busy_and_with_how_many_messages() -> None:
    trace = run("synchronous")
    shown = sequence(trace, range(2))
    (receives, sends) = (of_name(shown.figure, f"server's {link}") for link in ("down-link", "up-link"))
    end = 1e-3 * shown.figure.layout.yaxis.range[0] / 1.02
    answers = trace.transfers.where((trace.transfers.source == 3) & (trace.transfers.start_seconds < end))
    assert sends.customdata[0][1] == 3  # all three answers at once
    assert sum(sends.y) == pytest.approx(
        1e3 * len(set(answers.start_seconds)) * (answers.end_seconds - answers.start_seconds)[0]
    )
    assert {side < PLACES[3] for side in receives.x} == {True}
    assert {side > PLACES[3] for side in sends.x} == {True}
    share = 100 * sum(sends.y) / (1e3 * end)
    assert f"sends for {share:.0f} % of the time" in shown.summary


def test_synchronous_answers_leave_together_and_asynchronous_ones_each_on_its_own() -> None:
    starts = {
        kind: [begin for _, begin, _, _ in arrows(sequence(run(kind), range(1)).figure, "answer")]
        for kind in ("synchronous", "asynchronous")
    }
    assert len(set(starts["synchronous"])) == 1
    assert len(starts["synchronous"]) == 3
    assert len(set(starts["asynchronous"])) == len(starts["asynchronous"]) == 3
    assert WAIT.name in [trace.name for trace in sequence(run("synchronous")).figure.data]
    assert WAIT.name not in [trace.name for trace in sequence(run("asynchronous")).figure.data]


def test_labels_tell_bytes_and_the_version_that_the_worker_computes_on_next() -> None:
    trace = run("asynchronous")
    figure = sequence(trace).figure
    texts = [note.text for note in figure.layout.annotations]
    assert sum(text.startswith("of version ") for text in texts) == len(arrows(figure, "push"))
    assert "pushes of 4.19 MB" in sequence(trace).summary
    answers = messages(trace, 0.0, trace.total_seconds)["answer"]
    rows = trace.contributions
    made = np.searchsorted(trace.updates.time_seconds, answers.transfers.start_seconds + 1e-9)
    for worker, text, version in zip(answers.transfers.target, answers.text, made, strict=True):
        assert text == f"to worker {worker}: version {version}"
    assert "version 1" in texts
    pushes = messages(trace, 0.0, trace.total_seconds)["push"]
    read = {(worker, step): version for _, _, worker, step, version, *_ in zip(*rows.columns().values(), strict=True)}
    sends = trace.spans.of_kind(SpanKind.SEND)
    steps = {(w, end): step for w, step, end in zip(sends.worker, sends.step, sends.end_seconds, strict=True)}
    for worker, end, text in zip(pushes.transfers.source, pushes.transfers.end_seconds, pushes.text, strict=True):
        step = steps[worker, end]
        assert text == f"worker {worker}: gradient of step {step}, of version {read[worker, step]}"


def test_bars_are_what_the_workers_do() -> None:
    trace = run("synchronous")
    figure = sequence(trace, range(1)).figure
    compute = of_name(figure, COMPUTE.name)
    first = trace.spans.of_kind(SpanKind.COMPUTE).where(trace.spans.of_kind(SpanKind.COMPUTE).step == 0)
    assert sorted(zip(compute.x, compute.base, compute.y, strict=True)) == sorted(
        zip(
            PLACES[first.worker],
            1e3 * first.start_seconds,
            1e3 * (first.end_seconds - first.start_seconds),
            strict=True,
        )
    )
    assert COMMUNICATION.name not in [trace.name for trace in figure.data]
    assert of_name(figure, WAIT.name).marker.pattern.shape != compute.marker.pattern.shape


def test_updates_stand_on_their_servers_lifeline_with_their_version() -> None:
    trace = run("asynchronous")
    drawn = of_name(sequence(trace).figure, "update")
    assert set(drawn.x) == {PLACES[3]}
    assert list(drawn.text) == [str(number) for number in range(1, 1 + len(drawn.text))]
    assert list(drawn.y) == pytest.approx(1e3 * np.sort(trace.updates.time_seconds)[: len(drawn.y)])


def test_a_dropped_gradient_is_marked_at_the_server_when_its_push_arrives(make_trace: MakeTrace) -> None:
    trace = make_trace(backups=1)
    marks = of_name(sequence(trace).figure, "dropped gradient")
    assert set(marks.x) == {places(trace)[trace.workers]}
    ends = {round(end, 9) for _, _, _, end in arrows(sequence(trace).figure, "push")}
    assert {round(y, 9) for y in marks.y} <= ends


def test_with_several_servers_each_drop_is_marked_at_its_own() -> None:
    changes = {"communication.servers": 2, "cluster.workers": 4, "steps": 10, "cluster.bandwidth": "400 Mbit/s"}
    trace = simulate(example("backup_server").replacing(changes | {"policy": {"kind": "backup", "backups": 1}}))
    lost = trace.contributions.where(~trace.contributions.applied)
    assert set(lost.server) == {4, 5}
    marks = of_name(sequence(trace, range(10)).figure, "dropped gradient")
    pushes = trace.spans.of_kind(SpanKind.RECEIVE)
    arrival = {
        (server, step, label): end
        for server, step, label, end in zip(
            pushes.worker, pushes.step, pushes.label, pushes.end_seconds, strict=True
        )
    }  # fmt: skip
    expected = sorted(
        (places(trace)[server], round(arrival[server, step, f"from worker {worker}"], 9))
        for server, step, worker in zip(lost.server, lost.step, lost.worker, strict=True)
    )
    scale = 1e3 if "(ms)" in sequence(trace, range(10)).figure.layout.yaxis.title.text else 1.0
    found = sorted((x, round(y / scale, 9)) for x, y in zip(marks.x, marks.y, strict=True))
    assert found == expected


@pytest.mark.parametrize("window", [(0.0, math.inf), (-math.inf, 1.0), (math.nan, 1.0), (0.0, math.nan)])
def test_a_window_without_an_end_is_refused(window: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="must be finite numbers"):
        sequence(run("synchronous"), start_seconds=window[0], end_seconds=window[1])


def test_workers_among_themselves_have_arrows_and_a_line_per_update() -> None:
    trace = simulate(example("synchronous_ring"))
    shown = sequence(trace, range(1))
    assert len(arrows(shown.figure, "transfer")) == 24
    line = of_name(shown.figure, "update")
    assert list(line.x[:2]) == [-0.45, 3.45]
    assert "24 transfers of 1.05 MB and 1 update" in shown.summary
    _, drawn = (one for one in shown.figure.data if one.name == "transfer")
    assert drawn.hovertext[0].startswith("chunk ")


def test_a_measured_run_whose_transfers_nobody_saw_shows_communication_as_bars() -> None:
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 0.03)
    builder.span(1, SpanKind.COMPUTE, 0, 0.0, 0.05)
    tell_all_reduce(builder, 0, [0.03, 0.05], end=0.06)
    table = example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 1}).table()
    shown = sequence(builder.build(workers=2, servers=0, producer="measured", scenario=table))
    bars = of_name(shown.figure, COMMUNICATION.name)
    assert list(bars.base) == [50.0, 50.0]
    assert list(bars.y) == pytest.approx([10.0, 10.0])
    assert "1 update; a worker waits 10 ms on average, 17 % of the time" in shown.summary


def test_the_window_can_be_chosen_by_steps_or_by_time() -> None:
    trace = run("synchronous")
    spans = trace.spans.where((trace.spans.step == 3) & (trace.spans.worker < 3))
    low = 1e3 * spans.start_seconds.min()
    assert sequence(trace, [3]).figure.layout.yaxis.range[1] == pytest.approx(low)
    figure = sequence(trace, start_seconds=0.1, end_seconds=0.15).figure
    assert figure.layout.yaxis.range == pytest.approx((151.0, 100.0))
    for refused in ({"steps": [99]}, {"steps": [0], "end_seconds": 1.0}, {"start_seconds": 0.2, "end_seconds": 0.1}):
        with pytest.raises(InputError):
            sequence(trace, **refused)


def test_what_it_tells_of_waiting_agrees_with_the_metrics() -> None:
    trace = run("synchronous")
    shown = sequence(trace, start_seconds=0.0, end_seconds=trace.total_seconds)
    seconds = worker_seconds(trace)
    by_worker = {row["lifeline"]: row for row in shown.table}
    for worker in range(3):
        row = by_worker[f"worker {worker}"]
        assert row["computes (ms)"] == pytest.approx(1e3 * seconds["compute"][worker])
        assert row["waits (ms)"] == pytest.approx(1e3 * seconds["waiting"][worker])
    share = 100 * seconds["waiting"].mean() / trace.total_seconds
    assert f"{share:.0f} % of the time" in shown.summary
    stale = run("asynchronous")
    told = sequence(stale, start_seconds=0.0, end_seconds=stale.total_seconds).summary
    assert f"The stalest gradient applied is {stale.contributions.staleness.max()} updates old" in told


def test_one_worker_and_256_can_be_drawn(make_trace: MakeTrace) -> None:
    one = sequence(run("synchronous", workers=1))
    assert one.summary.startswith("Synchronous, 1 worker, ")
    many = make_trace(workers=256, steps=2)
    figure = sequence(many, range(1)).figure
    assert len(arrows(figure, "push")) == len(arrows(figure, "answer")) == 256
    assert len(figure.layout.xaxis.tickvals) <= 14
    assert not figure.layout.annotations
    assert places(many)[256] - places(many)[127] == places(many)[128] - places(many)[256] > 10


@pytest.mark.parametrize("window", [(1e6, 1e6 + 1.0), (-2.0, -1.0)])
def test_a_window_beyond_the_run_is_refused(window: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="must overlap the run"):
        sequence(run("synchronous"), start_seconds=window[0], end_seconds=window[1])


@pytest.mark.parametrize("servers", [1, 3, 8])
@pytest.mark.parametrize("policy", [{"kind": "synchronous"}, {"kind": "backup", "backups": 1}])
def test_waits_for_several_servers_at_once_are_one_wait(servers: int, policy: dict[str, Any]) -> None:
    trace = simulate(example("backup_server").replacing({"communication.servers": servers, "policy": policy}))
    shown = sequence(trace, start_seconds=0.0, end_seconds=trace.bounds_seconds[1])
    idle = worker_seconds(trace)["waiting"]
    for row in shown.table[servers:]:
        assert row["waits (ms)"] == pytest.approx(1e3 * idle[int(str(row["lifeline"]).split()[1])], abs=1e-6)
    assert "50 updates" in shown.summary


def test_a_window_that_begins_before_the_run_begins_with_it() -> None:
    trace = run("synchronous")
    assert sequence(trace, start_seconds=-1.0, end_seconds=0.2).summary == (
        sequence(trace, start_seconds=0.0, end_seconds=0.2).summary
    )


def test_the_legend_has_the_lines_of_a_crowded_drawing() -> None:
    figure = sequence(simulate(example("backup_server").replacing({"cluster.workers": 45, "steps": 2}))).figure
    for kind in ("push", "answer"):
        assert len({(line.line.dash, line.line.width) for line in figure.data if line.name == kind}) == 1


def test_the_mark_of_an_update_lies_on_that_of_a_dropped_gradient() -> None:
    figure = sequence(simulate(example("backup_server").replacing({"steps": 4}))).figure
    names = [one.name for one in figure.data]
    assert names.index("dropped gradient") < names.index("update")


def test_an_empty_run_says_so() -> None:
    builder = TraceBuilder()
    trace = builder.build(workers=3, servers=1, producer="measured")
    shown = sequence(trace)
    assert shown.summary == "Nothing was recorded, so nothing is drawn."
    assert len(shown.figure.data) == 0


@pytest.mark.parametrize(
    ("name", "changes"), [("backup_server", {"communication.servers": 2}), ("synchronous_ring", {})]
)
def test_labels_of_messages_at_the_same_time_do_not_cover_each_other(name: str, changes: dict[str, Any]) -> None:
    figure = sequence(simulate(example(name).replacing(changes)), range(1)).figure
    span_x, span_y = (abs(axis.range[1] - axis.range[0]) for axis in (figure.layout.xaxis, figure.layout.yaxis))
    labels = [(560 * note.x / span_x, 640 * note.y / span_y, 6 * len(note.text)) for note in figure.layout.annotations]
    assert len(labels) >= 4
    for place, (x, y, width) in enumerate(labels):
        for other_x, other_y, other_width in labels[:place]:
            assert abs(y - other_y) >= 16 or abs(x - other_x) >= (width + other_width) / 2
