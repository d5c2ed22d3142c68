"""The picture of whether to distribute: each job in its corner, with its answer in the sentence and the table."""

from __future__ import annotations

import math

import pytest

from distsim.errors import InputError
from distsim.figures import Job, decision
from distsim.figures.captioned import Captioned
from distsim.figures.decision import BOTH, BOUND, DATA, DAY, MODEL, ONE

DEVICE = {"device_bytes": 80e9, "operations_per_second": 1e14, "patience_seconds": 7 * DAY}
WEEK = 1e14 * 7 * DAY  # operations


def drawn(*jobs: Job) -> Captioned:
    return decision(jobs, **DEVICE)


@pytest.mark.parametrize(
    ("state", "operations", "answer"),
    [(80e9, WEEK, ONE), (80e9, 1.01 * WEEK, DATA), (81e9, WEEK, MODEL), (81e9, 1.01 * WEEK, BOTH)],
)
def test_two_lines_make_four_answers_and_bound_data_a_fifth(state: float, operations: float, answer: str) -> None:
    free, bound = drawn(Job("free", state, operations), Job("bound", state, operations, bound=True)).table
    assert (free["answer"], bound["answer"]) == (answer, BOUND)
    assert (free["data may move"], bound["data may move"]) == ("yes", "no")


def test_points_are_ratios_to_the_device_and_to_patience() -> None:
    shown = drawn(Job("a", 160e9, 3 * WEEK))
    (trace,) = (trace for trace in shown.figure.data if len(trace.x))
    assert (trace.name, [text.strip() for text in trace.text]) == (BOTH, ["a"])
    assert (trace.x[0], trace.y[0]) == pytest.approx((2.0, 3.0))
    assert shown.summary == f"a: {BOTH}."
    assert shown.table[0]["devices to hold it"] == 2
    assert shown.table[0]["days on one device"] == pytest.approx(21.0)


def test_every_job_and_both_lines_are_inside_the_axes() -> None:
    shown = drawn(Job("tiny", 1.0, 1.0), Job("huge", 1e15, 1e28))
    for axis, values in (("xaxis", (1 / 80e9, 1e15 / 80e9)), ("yaxis", (1 / WEEK, 1e28 / WEEK))):
        low, high = shown.figure.layout[axis].range
        assert all(low < math.log10(value) < high for value in (*values, 1.0))


def test_answers_differ_by_their_marks_too() -> None:
    figure = drawn(Job("a", 1.0, 1.0)).figure
    assert (
        len({trace.marker.symbol for trace in figure.data}) == len({trace.marker.color for trace in figure.data}) == 5
    )


def test_the_legend_names_what_has_no_corner() -> None:
    legend = [
        trace.name
        for trace in drawn(Job("a", 1.0, 1.0), Job("b", 1.0, 1.0, bound=True)).figure.data
        if trace.showlegend
    ]
    assert legend == [f"data may not move: {BOUND}"]
    assert not any(trace.showlegend for trace in drawn(Job("a", 1.0, 1.0)).figure.data)


def test_nothing_and_nonsense() -> None:
    assert "nothing is drawn" in drawn().summary
    for key in DEVICE:
        with pytest.raises(InputError, match=key):
            decision([], **DEVICE | {key: 0.0})
    with pytest.raises(InputError, match="a name each"):
        drawn(Job("a", 1.0, 1.0), Job("a", 2.0, 1.0))
    with pytest.raises(InputError, match="operations"):
        Job("a", 1.0, math.nan)
