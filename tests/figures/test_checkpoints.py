"""Goodput over the interval as drawn: the formula's curve and its optimum, rules of thumb, runs with their spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from scipy import stats

from distsim.failures import Failures
from distsim.figures import checkpoints
from distsim.theory.checkpointing import (
    best_interval_seconds,
    daly_interval_seconds,
    goodput,
    young_interval_seconds,
)

RUNS = "runs, mean and 95 % interval"
FAILURES = Failures(mean_time_between="40 h", checkpoint_every="30 min", checkpoint_cost="2 min", restart_cost="5 min")
WORKERS, MEAN_TIME, COST, RESTART = 8, 5 * 3600.0, 120.0, 300.0


def of_name(figure: go.Figure, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def test_the_curve_is_the_formula_of_all_workers_together_and_is_highest_at_the_line() -> None:
    figure = checkpoints(FAILURES, WORKERS).figure
    curve = of_name(figure, "formula")
    expected = [100 * goodput(60 * minutes, COST, RESTART, MEAN_TIME) for minutes in curve.x]
    assert list(curve.y) == pytest.approx(expected)
    best = best_interval_seconds(COST, MEAN_TIME) / 60
    (line,) = figure.layout.shapes
    assert line.x0 == line.x1 == pytest.approx(best)
    assert curve.x[int(np.argmax(curve.y))] == pytest.approx(best, rel=0.05)
    assert curve.x[0] < best / 8
    assert best * 8 < curve.x[-1]
    (label,) = figure.layout.annotations
    assert label.x == pytest.approx(np.log10(best))  # of a logarithmic axis
    assert label.text == f"best: every {best:.3g} min"


def test_the_rules_stand_on_the_curve() -> None:
    figure = checkpoints(FAILURES, WORKERS).figure
    for name, rule in (("Young 1974", young_interval_seconds), ("Daly 2006", daly_interval_seconds)):
        mark, seconds = of_name(figure, name), rule(COST, MEAN_TIME)
        assert list(mark.x) == pytest.approx([seconds / 60])
        assert list(mark.y) == pytest.approx([100 * goodput(seconds, COST, RESTART, MEAN_TIME)])
    assert list(of_name(figure, "chosen").x) == pytest.approx([30.0])
    symbols = [mark.marker.symbol for mark in figure.data if mark.mode == "markers"]
    assert len(set(symbols)) == len(symbols)


def test_runs_have_their_mean_and_students_interval() -> None:
    found = {1800.0: [0.80, 0.84, 0.85], 7200.0: [0.7]}
    shown = checkpoints(FAILURES, WORKERS, found)
    drawn = of_name(shown.figure, RUNS)
    assert list(drawn.x) == [30.0, 120.0]
    assert list(drawn.y) == pytest.approx([83.0, 70.0])
    reach = 100 * stats.t.ppf(0.975, 2) * stats.sem([0.80, 0.84, 0.85])
    assert list(drawn.error_y.array) == pytest.approx([reach, 0.0])
    assert list(drawn.error_y.arrayminus) == pytest.approx([reach, 0.0])
    chosen = shown.table[0]
    assert chosen["mean of the runs (%)"] == pytest.approx(83.0)
    assert chosen["from (%)"] == pytest.approx(83.0 - reach)
    assert chosen["to (%)"] == pytest.approx(83.0 + reach)
    assert f"(83.0 % in 3 runs, {83 - reach:.1f} % to {83 + reach:.1f} %)" in shown.summary


def test_an_interval_ends_at_the_whole_time() -> None:
    """Student's interval of these runs reaches from below 0 to above 100 %."""
    shown = checkpoints(FAILURES, WORKERS, {1800.0: [0.02, 0.999], 7200.0: [0.98, 0.99, 1.0]})
    drawn, chosen = of_name(shown.figure, RUNS), shown.table[0]
    assert list(drawn.y + drawn.error_y.array) == pytest.approx([100.0, 100.0])
    low = 99.0 - 100 * stats.t.ppf(0.975, 2) * stats.sem([0.98, 0.99, 1.0])
    assert list(drawn.y - drawn.error_y.arrayminus) == pytest.approx([0.0, low])
    assert [list(ends) for ends in drawn.customdata] == [pytest.approx([0.0, 100.0]), pytest.approx([low, 100.0])]
    assert (chosen["from (%)"], chosen["to (%)"]) == (0.0, pytest.approx(100.0))


def test_the_table_and_the_sentence_have_the_formulas_numbers() -> None:
    shown = checkpoints(FAILURES, WORKERS)
    assert [row["interval"] for row in shown.table] == ["chosen", "best", "Young 1974", "Daly 2006"]
    assert [row["mean of the runs (%)"] for row in shown.table] == [None] * 4
    best = best_interval_seconds(COST, MEAN_TIME)
    shares = [100 * goodput(seconds, COST, RESTART, MEAN_TIME) for seconds in (1800.0, best)]
    assert shown.summary == (
        "A checkpoint every 30 min costs 120 s, and one of 8 workers fails every 300 min: "
        f"{shares[0]:.1f} % of the time is useful work. The best interval is {best / 60:.3g} min, "
        f"with {shares[1]:.1f} %."
    )


def test_one_run_has_no_spread() -> None:
    shown = checkpoints(FAILURES, WORKERS, {1800.0: [0.8]})
    assert "(80.0 % in one run)" in shown.summary
    assert shown.table[0]["from (%)"] is None


def test_a_checkpoint_that_costs_nothing_has_no_best_interval() -> None:
    free = FAILURES.model_copy(update={"checkpoint_cost_seconds": 0.0})
    shown = checkpoints(free, 1)
    assert [row["interval"] for row in shown.table] == ["chosen"]
    assert shown.figure.layout.shapes == ()
    assert shown.summary.endswith("is useful work. More frequent checkpoints are better.")
    assert "the one worker fails every" in shown.summary


@pytest.mark.parametrize("workers", [1, 256])
def test_one_worker_and_256(workers: int) -> None:
    shown = checkpoints(FAILURES, workers, {60.0: [0.5, 0.6]})
    curve = of_name(shown.figure, "formula")
    assert min(curve.x) < 1.0 < max(curve.x)
    assert np.isfinite(curve.y).all()
