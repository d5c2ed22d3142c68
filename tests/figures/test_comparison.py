"""The comparison, the step scatter and the four stages: what they would draw and say."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from distsim.comparison import compare
from distsim.errors import InputError
from distsim.figures import comparison, step_scatter
from distsim.figures.theme import MEASURED, PREDICTED
from distsim.figures.wording import signed
from distsim.trace import Trace, TraceBuilder

MakeTrace = Callable[..., Trace]


@pytest.fixture
def runs(make_trace: MakeTrace) -> tuple[Trace, Trace]:
    """A prediction, and a measurement whose compute takes 5 % longer."""
    return make_trace(backups=1), make_trace(backups=1, slower=1.05, producer="measured")


def test_each_figure_stands_in_a_panel_with_its_unit_and_error(runs: tuple[Trace, Trace]) -> None:
    compared = compare(*runs)
    shown = comparison(compared)
    pairs = [trace for trace in shown.figure.data if trace.legendgroup]
    assert [trace.name for trace in pairs] == ["predicted", "measured"] * (len(pairs) // 2)
    titles = [note.text for note in shown.figure.layout.annotations]
    assert "step time, median (ms): <b>error -4." in titles[0]
    assert all("<b>error " in title for title in titles[:-1])
    assert [trace.marker.pattern.shape for trace in pairs[:2]] == [PREDICTED.pattern, MEASURED.pattern]
    assert sum(bool(trace.showlegend) for trace in pairs) == 2
    total = next(row for row in shown.table if str(row["figure"]).startswith("total"))
    assert total["error"] == signed(100 * (runs[0].total_seconds / runs[1].total_seconds - 1), "%")


def test_titles_of_rows_do_not_meet_and_each_has_its_own_line(runs: tuple[Trace, Trace]) -> None:
    figure = comparison(compare(*runs)).figure
    titles = figure.layout.annotations
    assert len(titles) == 6  # five quantities, and the causes
    assert {(title.xanchor, title.xref, title.x) for title in titles} == {("left", "paper", 0.0)}
    tops = sorted((axis.domain for axis in figure.select_yaxes()), reverse=True)
    inner = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    for (low, _), (_, high) in itertools.pairwise(tops):
        assert (low - high) * inner >= 30  # pixels, for a line of 12


def test_causes_are_signed_and_sum_to_the_error_of_the_total(runs: tuple[Trace, Trace]) -> None:
    shown = comparison(compare(*runs))
    bars = {trace.name: trace.x[0] for trace in shown.figure.data if not trace.legendgroup}
    assert list(bars) == ["compute", "communication", "waiting", "total"]
    assert bars["compute"] < 0
    assert bars["total"] == pytest.approx(bars["compute"] + bars["communication"] + bars["waiting"])
    assert bars["total"] == pytest.approx(1e3 * (runs[0].total_seconds - runs[1].total_seconds))
    assert "below the measured" in shown.summary
    assert "the largest part of the error is compute" in shown.summary


def test_labels_of_causes_have_room(runs: tuple[Trace, Trace]) -> None:
    for pair in (runs, runs[::-1], (runs[0], runs[0])):
        shown = comparison(compare(*pair))
        values = [trace.x[0] for trace in shown.figure.data if not trace.legendgroup]
        (*_, axis) = shown.figure.select_xaxes()
        low, high = axis.range
        reach = max(map(abs, values))
        assert low <= min(0.0, *values) - 0.04 * reach
        assert high >= max(0.0, *values) + 0.3 * reach


def test_equal_runs_have_no_error(runs: tuple[Trace, Trace]) -> None:
    shown = comparison(compare(runs[0], runs[0]))
    assert shown.summary == f"Both runs take {runs[0].total_seconds:.3g} s."
    assert {row["error"] for row in shown.table} <= {"0 %", "0 points", "0 ms", "0"}


def test_signs_are_shown_and_noise_is_not() -> None:
    assert [signed(value, "%") for value in (3.456, -3.456, 0.0, 1e-9, -1e-9)] == [
        "+3.46 %", "-3.46 %", "0 %", "0 %", "0 %",
    ]  # fmt: skip


def test_step_scatter_has_a_point_per_joined_step_on_equal_axes(runs: tuple[Trace, Trace]) -> None:
    shown = step_scatter(*runs)
    exact, steps = shown.figure.data
    assert len(steps.x) == len(runs[0].updates) == shown.table[0]["steps"]
    assert list(exact.x) == list(exact.y)
    assert shown.figure.layout.xaxis.range == shown.figure.layout.yaxis.range
    assert all(y < x for x, y in zip(steps.x, steps.y, strict=True))
    assert (shown.figure.layout.xaxis.title.text, shown.figure.layout.yaxis.title.text) == (
        "measured step time (ms)",
        "predicted step time (ms)",
    )


def test_step_scatter_without_a_step_says_so_and_without_a_common_one_is_refused(runs: tuple[Trace, Trace]) -> None:
    whole = runs[0]
    empty = TraceBuilder().build(workers=4, servers=1, producer="measured", scenario=whole.metadata["scenario"])
    shown = step_scatter(whole, empty)
    assert (shown.summary, shown.table) == ("No step was recorded, so nothing is drawn.", [])
    assert not shown.figure.data
    assert shown.figure.layout.xaxis.title.text == "measured step time (ms)"
    early, late = (
        replace(whole, updates=whole.updates.where(rows))
        for rows in (whole.updates.version <= 2, whole.updates.version > 2)
    )
    counts = len(early.updates), len(late.updates)
    told = rf"step_scatter\(predicted, measured\) = \({counts[0]}, {counts[1]}\): are steps of which none is in both"
    with pytest.raises(InputError, match=told):
        step_scatter(early, late)
