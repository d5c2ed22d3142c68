"""A run with failures: checkpoints, lost work and restarts are told as what they are, whoever recorded them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console

from distsim.cli.summary_tables import causes_line, comparison_table
from distsim.comparison import compare
from distsim.figures import comparison, critical_path, sequence, timeline
from distsim.figures.theme import CHECKPOINT, LOST, RESTART, WAIT
from distsim.metrics import goodput, paused_seconds, summary, worker_seconds
from distsim.trace import PAUSE_KINDS, SpanKind, Trace, TraceBuilder

MakeTrace = Callable[..., Trace]
LOOKS = {SpanKind.CHECKPOINT: CHECKPOINT, SpanKind.LOST: LOST, SpanKind.RESTART: RESTART}


@pytest.mark.parametrize("producer", ["simulated", "measured"])
def test_the_timeline_has_a_bar_of_its_own_for_each_pause(fallen: MakeTrace, producer: str) -> None:
    trace = fallen(producer=producer)
    shown = timeline(trace, end_seconds=trace.total_seconds)
    bars = {bar.name: bar for bar in shown.figure.data if bar.type == "bar"}
    for kind, look in LOOKS.items():
        bar = bars[look.name]
        assert len(bar.x) == len(trace.spans.of_kind(kind)) > 0
        assert (bar.marker.color, bar.marker.pattern.shape) == (look.colour, look.pattern)
        assert bar.hovertext[0] == f"worker 0: {kind.words}"
        assert "step" not in bar.hovertemplate, "a pause belongs to no step"
    (row,) = shown.table
    waiting, _, pauses = waiting_and_pauses(trace)
    assert row["waiting (%)"] == pytest.approx(waiting)
    assert f"waits {waiting:.0f} %; " in shown.summary
    for kind, share in pauses.items():
        assert row[f"{kind.words} (%)"] == pytest.approx(share)
        assert f"{kind.words} {share:.0f} %" in shown.summary


def waiting_and_pauses(trace: Trace) -> tuple[float, float, dict[SpanKind, float]]:
    """Percent of the workers' time that is waiting alone, the idle share, and each pause, from the spans themselves."""
    whole = trace.workers * trace.total_seconds / 100.0
    pauses = {
        kind: float((own.end_seconds - own.start_seconds).sum()) / whole
        for kind in PAUSE_KINDS
        for own in [trace.spans.of_kind(kind)]
    }
    idle = 100.0 * (summary(trace).idle_share or 0.0)
    return idle - sum(pauses.values()), idle, pauses


def test_shares_still_add_up_to_one_and_the_summary_tells_what_the_idle_share_holds(fallen: MakeTrace) -> None:
    trace = fallen()
    waiting, idle, pauses = waiting_and_pauses(trace)
    assert sum(worker_seconds(trace).values()) == pytest.approx(np.full(4, trace.total_seconds))
    found = summary(trace)
    assert found.paused_shares == pytest.approx({kind.text: share / 100.0 for kind, share in pauses.items()})
    assert 0.0 < waiting < idle
    assert 1.0 - sum(pauses.values()) / 100.0 == pytest.approx(goodput(trace))
    assert list(found.as_dict()["paused_shares"]) == ["checkpoint", "lost", "restart"]


def test_a_run_without_failures_has_no_word_of_pauses(make_trace: MakeTrace) -> None:
    trace = make_trace()
    assert paused_seconds(trace) == {}
    assert "paused_shares" not in summary(trace).as_dict()
    shown = timeline(trace)
    assert not [column for column in shown.table[0] if "lost" in column or "restart" in column]
    assert ";" not in shown.summary


def test_a_pause_counts_once_and_not_where_work_lies_over_it() -> None:
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 2.0)
    builder.span(0, SpanKind.CHECKPOINT, 0, 1.0, 3.0)
    builder.span(0, SpanKind.LOST, 1, 2.5, 4.0)
    builder.span(0, SpanKind.RESTART, 2, 4.0, 9.0)  # beyond the last update
    builder.update(1, 6.0)
    trace = builder.build(1, 0, "measured")
    found = {kind: float(seconds[0]) for kind, seconds in paused_seconds(trace).items()}
    assert found == {SpanKind.CHECKPOINT: 1.0, SpanKind.LOST: 1.0, SpanKind.RESTART: 2.0}
    assert worker_seconds(trace)["waiting"] == [4.0]


def test_the_critical_path_names_lost_work(fallen: MakeTrace) -> None:
    trace = fallen()
    shown = critical_path(trace, 0.0, trace.total_seconds)
    rows = {row["kind"]: row["share of the path (%)"] for row in shown.table}
    _, _, pauses = waiting_and_pauses(trace)
    for kind, share in pauses.items():
        assert rows[kind.words] == pytest.approx(share), "all workers pause at once, so all of it is on the path"
        assert f"{kind.words} {share:.0f} %" in shown.summary
    named = {bar.name for bar in shown.figure.data if bar.type == "bar" and bar.showlegend is not False}
    assert {look.name for look in LOOKS.values()} <= named


@pytest.mark.parametrize("producer", ["simulated", "measured"])
def test_the_sequence_names_pauses_beside_waiting(fallen: MakeTrace, producer: str) -> None:
    trace = fallen("parameter_server", producer)
    shown = sequence(trace, start_seconds=0.0, end_seconds=trace.total_seconds)
    assert {look.name for look in (WAIT, *LOOKS.values())} <= {bar.name for bar in shown.figure.data}
    waits = trace.spans.of_kind(SpanKind.WAIT)
    for row in shown.table[1:]:
        rank = int(str(row["lifeline"]).split()[1])
        for kind in PAUSE_KINDS:
            own = trace.spans.of_kind(kind)
            own = own.where(own.worker == rank)
            assert row[f"{kind.words} (ms)"] == pytest.approx(1e3 * (own.end_seconds - own.start_seconds).sum())
        own = waits.where((waits.worker == rank) & (waits.start_seconds < trace.total_seconds))
        assert row["waits (ms)"] == pytest.approx(1e3 * (own.end_seconds - own.start_seconds).sum())
    assert "; checkpoint " in shown.summary
    assert ", lost work " in shown.summary


def test_a_step_of_the_sequence_is_no_pause_of_the_same_number(fallen: MakeTrace) -> None:
    """Pauses count by themselves: the seventh one is long after the seventh step."""
    trace = fallen("parameter_server")
    own = trace.spans.where((trace.spans.worker < 4) & (trace.spans.step == 7))
    work, pauses = own.where(~np.isin(own.kind, PAUSE_KINDS)), own.of_kind(*PAUSE_KINDS)
    assert pauses.end_seconds.max() > work.end_seconds.max()
    high, low = sequence(trace, [7]).figure.layout.yaxis.range
    assert low == pytest.approx(1e3 * work.start_seconds.min())
    assert high < 1e3 * pauses.end_seconds.max()


def test_a_comparison_of_runs_with_failures_does_not_call_them_waiting(fallen: MakeTrace) -> None:
    compared = compare(fallen(), fallen(producer="measured"))
    shown = comparison(compared)
    assert "of the total's error: waiting and failures" in [row["figure"] for row in shown.table]
    assert "waiting and failures" in [bar.name for bar in shown.figure.data]
    assert "waiting and failures" in causes_line(compared)
    console = Console(width=110)
    with console.capture() as printed:
        console.print(comparison_table(compared))
    assert "of it lost work" in printed.get()


def test_what_the_error_of_pauses_is(fallen: MakeTrace, make_trace: MakeTrace) -> None:
    assert compare(make_trace(), make_trace(producer="measured")).cause_words("waiting") == "waiting"
    assert compare(fallen(), fallen(producer="measured")).cause_words("compute") == "compute"
