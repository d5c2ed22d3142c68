"""What the scaling figure would draw: curves, points with their bars, the ideal, and both axes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.calibration import Calibration, Exchange
from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import SpeedUps, scaling
from distsim.metrics import throughput_samples_per_second
from distsim.simulation import simulate
from distsim.theory.scaling import speed_up
from distsim.trace import Trace, TraceBuilder

COUNTS = (1, 2, 4, 8)


def runs(producer: str = "simulated", seeds: tuple[int, ...] = (7,)) -> list[Trace]:
    """A ring of each number of workers, once for each seed."""
    found = [
        simulate(example("synchronous_ring").replacing({"cluster.workers": workers, "steps": 8, "seed": seed}))
        for workers in COUNTS
        for seed in seeds
    ]
    return [replace(trace, metadata=trace.metadata | {"producer": producer}) for trace in found]


def formula(way: str) -> SpeedUps:
    """The curve of a formula."""
    return SpeedUps(way, COUNTS, [speed_up(way, 0.1, workers) for workers in COUNTS])


def drawn(figure: go.Figure, name: str, panel: int) -> Any:
    """The trace of this name in this panel."""
    (found,) = [one for one in figure.data if one.name == name and one.xaxis == ("x" if panel == 1 else "x2")]
    return found


def test_speed_up_is_on_the_left_and_speed_up_per_worker_on_the_right() -> None:
    figure = scaling(formula("ring")).figure
    left, right = drawn(figure, "ring", 1), drawn(figure, "ring", 2)
    assert list(left.x) == list(right.x) == list(COUNTS)
    assert list(left.y) == pytest.approx([speed_up("ring", 0.1, workers) for workers in COUNTS])
    assert list(right.y) == pytest.approx([100 * y / workers for y, workers in zip(left.y, COUNTS, strict=True)])
    assert list(drawn(figure, "ideal", 1).x) == list(drawn(figure, "ideal", 1).y) == [1, 8]
    assert list(drawn(figure, "ideal", 2).y) == [100, 100]
    assert (figure.layout.xaxis.title.text, figure.layout.xaxis2.title.text) == ("workers", "workers")
    assert figure.layout.yaxis2.title.text.endswith("(%)")


def test_efficiencies_of_traces_are_those_of_the_metrics() -> None:
    traces = runs()
    shown = scaling(SpeedUps.of_traces("ring", traces))
    per_worker = [throughput_samples_per_second(trace) / trace.workers for trace in traces]
    expected = [100.0 * one / per_worker[0] for one in per_worker]
    assert [row["ring: efficiency (%)"] for row in shown.table] == pytest.approx(expected)
    assert list(drawn(shown.figure, "ring", 2).y) == pytest.approx(expected)


def test_repeats_are_their_median_with_bars_to_their_ends_and_measured_ones_are_points() -> None:
    seeds = (1, 2, 3, 4, 5)
    traces = runs("measured", seeds)
    curve = SpeedUps.of_traces("ring", list(reversed(traces)))
    throughputs = np.array([1.0 / trace.total_seconds for trace in traces]).reshape(len(COUNTS), len(seeds))
    expected = throughputs * np.array(COUNTS)[:, None] / np.median(throughputs[0])
    assert list(curve.values) == pytest.approx(np.median(expected, axis=1))
    points = drawn(scaling(curve).figure, "ring, measured", 1)
    assert points.mode == "markers"
    assert points.y + points.error_y.array == pytest.approx(expected.max(axis=1))
    assert points.y - points.error_y.arrayminus == pytest.approx(expected.min(axis=1))
    assert SpeedUps.of_traces("ring", runs()).low is None


def test_a_prediction_and_its_measurement_share_a_colour_and_others_do_not() -> None:
    ring, server, measured = formula("ring"), formula("server"), replace(formula("ring"), points=True)
    figure = scaling(ring, server, measured).figure
    line, other, points = (drawn(figure, name, 1) for name in ("ring", "server", "ring, measured"))
    assert line.line.color == points.marker.color != other.line.color
    assert line.line.dash != other.line.dash
    assert line.marker.symbol != other.marker.symbol
    assert sum(1 for trace in figure.data if trace.showlegend) == 4


def test_points_of_others_are_called_reported() -> None:
    article = replace(formula("ring"), points=True, reported=True)
    both = scaling(formula("ring"), article)
    assert len(drawn(both.figure, "ring, reported", 1).x) == len(article.workers)
    assert "ring, reported" in both.summary
    assert "measur" not in both.summary


def test_the_sentence_says_what_is_reached_and_where_more_workers_are_slower() -> None:
    falling = SpeedUps("crowded", [1, 2, 4, 8], [1.0, 1.8, 2.0, 1.5])
    assert scaling(falling).summary == (
        "On 8 workers: crowded 1.5 times as fast as one worker, an efficiency of 19 %. "
        "crowded: of the numbers drawn, 4 workers are the fastest."
    )
    both = scaling(formula("ring"), replace(formula("ring"), workers=[1, 2, 4, 16], points=True)).summary
    assert both.startswith("On 8 workers: ring 6.81 times")
    assert "On 16 workers: ring, measured" in both


def test_the_sentence_tells_how_far_a_prediction_is_from_its_measurement() -> None:
    predicted = SpeedUps("ring", [1, 2, 4, 8], [1.0, 1.9, 3.6, 6.6])
    measured = SpeedUps("ring", [1, 2, 4], [1.0, 1.9, 3.0], points=True)
    told = " On 4 workers the prediction of ring is 20 % above the measurement."
    assert scaling(predicted, measured).summary.endswith(told)
    assert "prediction" not in scaling(predicted, replace(measured, name="server")).summary
    assert "prediction" not in scaling(predicted, replace(measured, workers=[1, 3, 5])).summary


def test_speeds_below_one_worker_have_numbers_at_the_axis() -> None:
    axis = scaling(SpeedUps("crowded", [1, 2, 4], [1.0, 0.6, 0.2])).figure.layout.yaxis
    assert list(axis.ticktext) == ["1/2", "1/4", "1", "2", "4"]
    assert list(axis.tickvals) == [0.5, 0.25, 1, 2, 4]


def test_efficiencies_above_one_and_error_bars_stay_inside_the_axis() -> None:
    curve = SpeedUps("cache", [1, 2], [1.0, 2.6], low=[0.9, 2.5], high=[1.2, 2.8], points=True)
    assert scaling(curve).figure.layout.yaxis2.range[1] > 140.0


def test_a_run_without_updates_says_so_and_one_without_one_worker_is_refused() -> None:
    table = example("synchronous_ring").replacing({"cluster.workers": 1}).table()
    empty = TraceBuilder().build(workers=1, servers=0, producer="measured", scenario=table)
    assert scaling(SpeedUps.of_traces("ring", [empty])).summary.endswith("so nothing is drawn.")
    with pytest.raises(InputError, match="must have a run of one worker"):
        SpeedUps.of_traces("ring", runs()[1:])


@pytest.mark.parametrize(
    ("workers", "values", "told"),
    [
        ([1, 2], [1.0], "must be 2 values"),
        ([2, 1], [1.0, 2.0], "that increase"),
        ([0, 1], [1.0, 2.0], "at least 1"),
        ([1, 2], [1.0, float("nan")], "must be finite"),
    ],
)
def test_curves_that_cannot_be_are_refused(workers: list[int], values: list[float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        SpeedUps("curve", workers, values)


def test_no_curve_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        scaling()


def test_runs_that_differ_in_more_than_their_number_of_workers_are_refused() -> None:
    ring = example("synchronous_ring")
    alone, slower = ring.replacing({"cluster.workers": 1}), ring.replacing({"compute.mean": "500 ms"})
    with pytest.raises(InputError, match=r"ring: compute.mean = '500 ms'.*must be the same in all its runs"):
        SpeedUps.of_traces("ring", [simulate(alone), simulate(slower)])
    other = ring.replacing({"seed": 11, "steps": 4, "name": "again"})
    assert SpeedUps.of_traces("ring", [simulate(alone), simulate(other)]).workers == [1, 4]


def test_each_number_of_workers_may_have_calibrated_links_of_its_own() -> None:
    known = Calibration(tuple(Exchange("ring", workers, 1e9 / workers, 1e-4, 0.0, ()) for workers in (1, 4)))
    ring = example("synchronous_ring")
    runs = [simulate(ring.replacing({"cluster.workers": workers}), known) for workers in (1, 4)]
    assert SpeedUps.of_traces("ring", runs).workers == [1, 4]


def test_of_what_never_pays_one_worker_is_the_most() -> None:
    assert scaling(SpeedUps("server", [1, 2], [1.0, 0.7])).summary.endswith(
        "of the numbers drawn, 1 worker is the fastest."
    )
