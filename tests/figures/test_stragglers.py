"""Straggler distributions as drawn: shares, marks of order statistics, the slowest's growth, the run beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.compute import Compute
from distsim.distributions import Constant, Exponential, Lognormal
from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import stragglers
from distsim.metrics import worker_seconds
from distsim.simulation import simulate
from distsim.theory.order_statistics import WorkerTime, exponential_seconds
from distsim.theory.stragglers import worker_times
from distsim.trace import SpanKind, TraceBuilder

EIGHT = [WorkerTime(Exponential(0.05))] * 8


def of_name(figure: go.Figure, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def test_marks_stand_at_the_expected_kth_smallest() -> None:
    marks = of_name(stragglers(EIGHT).figure, "expected k-th of 8")
    assert list(marks.customdata) == list(range(1, 9))
    assert list(marks.x) == pytest.approx([1e3 * exponential_seconds(0.05, k, 8) for k in range(1, 9)])
    assert set(marks.y) == {0.0}


def test_lines_stand_at_the_mean_and_at_the_slowest() -> None:
    figure = stragglers(EIGHT).figure
    lines = {shape.name: shape.x0 for shape in figure.layout.shapes}
    assert lines == {
        "mean": pytest.approx(50.0),
        "slowest of 8": pytest.approx(1e3 * exponential_seconds(0.05, 8, 8)),
    }
    assert [note.text for note in figure.layout.annotations] == ["mean:<br>50 ms", "slowest of 8:<br>136 ms"]


def test_the_slowest_grows_as_the_formula_says() -> None:
    shown = stragglers(EIGHT)
    slowest, but = (of_name(shown.figure, name) for name in ("expected slowest of N", "expected slowest but one"))
    assert list(slowest.x) == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert list(slowest.y) == pytest.approx([1e3 * exponential_seconds(0.05, n, n) for n in slowest.x])
    assert but.y[0] is None
    assert list(but.y[1:]) == pytest.approx([1e3 * exponential_seconds(0.05, n - 1, n) for n in but.x[1:]])
    assert but.line.dash != slowest.line.dash
    assert [row["workers"] for row in shown.table] == list(slowest.x)
    assert shown.table[3]["slowest (ms)"] == pytest.approx(slowest.y[3])
    assert "136 ms, 2.72 times as long; without waiting for the slowest 85.9 ms" in shown.summary


SLOW_AND_PAUSED = Compute(
    distribution="exponential", mean="50 ms", slow={3: 2.0}, pauses={"probability": 0.02, "duration": "1 s"}
)


@pytest.mark.parametrize(
    "times",
    [EIGHT, [WorkerTime(Lognormal(0.05, 0.3))] * 3, worker_times(SLOW_AND_PAUSED, workers=4)],
    ids=["exponential", "lognormal", "slow and paused"],
)
def test_bars_are_shares_of_the_distribution_and_hardly_any_is_left_out(times: list[WorkerTime]) -> None:
    bars = of_name(stragglers(times).figure, "one worker's time, expected")
    assert 99.3 <= sum(bars.y) <= 100.0 + 1e-9
    ends = np.array(bars.x[:-1] + np.diff(bars.x) / 2) / 1e3
    ended = 100.0 * (1.0 - np.mean([time.survival(ends) for time in times], axis=0))
    assert np.cumsum(bars.y)[:-1] == pytest.approx(ended, abs=0.11)


def test_one_time_that_never_varies_is_one_bar() -> None:
    shown = stragglers([WorkerTime(Constant(0.05))] * 256)
    bars = of_name(shown.figure, "one worker's time, expected")
    assert sorted(bars.y)[-2:] == pytest.approx([0.0, 100.0])
    assert len(of_name(shown.figure, "expected k-th of 256").x) == 32
    assert of_name(shown.figure, "expected k-th of 256").customdata[-1] == 256
    assert "1 times as long" in shown.summary


def test_one_worker_waits_for_nobody() -> None:
    shown = stragglers([WorkerTime(Exponential(2.0))])
    assert shown.summary.startswith("A step takes one worker 2 s on average. The slowest of 256")
    assert len(of_name(shown.figure, "expected k-th of 1").x) == 1


def test_workers_that_differ_are_added_one_by_one() -> None:
    times = worker_times(Compute(distribution="exponential", mean="50 ms", slow={1: 2.0}), workers=3)
    figure = stragglers(times).figure
    slowest = of_name(figure, "expected slowest of N")
    assert list(slowest.x) == [1, 2, 3]
    assert slowest.y[1] == pytest.approx(1e3 * (0.05 + 0.1 - 1 / (1 / 0.05 + 1 / 0.1)))
    assert figure.layout.xaxis2.title.text == "the first N workers"


def test_a_run_stands_beside_its_formula_and_agrees_with_the_metrics() -> None:
    scenario = example("synchronous_ring").replacing({"steps": 400})
    trace = simulate(scenario)
    shown = stragglers(worker_times(scenario.compute, 4), trace)
    slowest, formula = of_name(shown.figure, "slowest, mean in the run"), of_name(shown.figure, "expected slowest of N")
    assert list(slowest.x) == [4]
    spans = trace.spans.of_kind(SpanKind.COMPUTE)
    by_step = np.zeros((400, 4))
    by_step[spans.step, spans.worker] = spans.end_seconds - spans.start_seconds
    assert slowest.y[0] == pytest.approx(1e3 * by_step.max(axis=1).mean())
    error = 1e3 * by_step.max(axis=1).std() / 400**0.5
    assert slowest.y[0] == pytest.approx(formula.y[list(formula.x).index(4)], abs=4 * error)
    line = of_name(shown.figure, "in the run")
    assert 99.0 <= sum(line.y) <= 100.0
    mean = worker_seconds(trace)["compute"].mean() / 400
    assert f"In the simulated run a worker took {1e3 * mean:.3g} ms" in shown.summary
    off = 100.0 * (formula.y[list(formula.x).index(4)] / slowest.y[0] - 1.0)
    assert shown.summary.endswith(f"; the expectation is {abs(off):.2g} % {'above' if off > 0 else 'below'}.")


def test_an_empty_run_is_told() -> None:
    empty = TraceBuilder().build(workers=8, servers=0, producer="measured")
    shown = stragglers(EIGHT, empty)
    assert shown.summary.endswith("No step that all workers ended was recorded.")
    assert "in the run" not in [trace.name for trace in shown.figure.data]


def test_a_step_that_was_cancelled_is_not_drawn_as_a_short_one() -> None:
    policy = {"kind": "backup", "backups": 1, "cancel": True}
    scenario = example("backup_server").replacing({"cluster.workers": 4, "steps": 20, "policy": policy})
    trace = simulate(scenario)
    times = worker_times(scenario.compute, 4)
    assert stragglers(times, trace).summary.endswith("No step that all workers ended was recorded.")
    rows = trace.contributions
    uncut = replace(trace, contributions=rows.where(~(rows.cancelled & (rows.step < 3))))
    drawn = of_name(stragglers(times, uncut).figure, "slowest, mean in the run")
    spans = trace.spans.of_kind(SpanKind.COMPUTE)
    spans = spans.where(spans.step < 3)
    slowest = [(spans.end_seconds - spans.start_seconds)[spans.step == step].max() for step in range(3)]
    assert list(drawn.y) == [pytest.approx(1e3 * np.mean(slowest))]


def test_pieces_of_each_others_steps_are_refused() -> None:
    scenario = example("backup_server").replacing({"policy": {"kind": "flexrr"}, "steps": 4})
    with pytest.raises(InputError, match="workers do their own steps"):
        stragglers(worker_times(scenario.compute, scenario.cluster.workers), simulate(scenario))


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InputError, match="there is no worker"):
        stragglers([])
    with pytest.raises(InputError, match="must be 8, one per time"):
        stragglers(EIGHT, TraceBuilder().build(workers=3, servers=0, producer="measured"))
