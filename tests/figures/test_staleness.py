"""Staleness as drawn: bars that are the metrics' histogram, lines at the metrics' means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from distsim.comparison import staleness_distance
from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import staleness
from distsim.figures.theme import MEASURED, PREDICTED
from distsim.metrics import staleness_histogram, summary
from distsim.simulation import simulate
from distsim.trace import Trace, TraceBuilder


def run(kind: str, workers: int = 5, steps: int = 50, **fields: Any) -> Trace:
    """A run of this policy through one server."""
    changes = {"cluster.workers": workers, "steps": steps, "policy": {"kind": kind, **fields}}
    return simulate(example("backup_server").replacing(changes))


def as_measured(trace: Trace) -> Trace:
    """The same run, which says that it was a real one."""
    return replace(trace, metadata=trace.metadata | {"producer": "measured"})


def of_name(figure: go.Figure, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def test_bars_are_the_metrics_histogram_and_lines_its_means() -> None:
    traces = {"asynchronous": run("asynchronous"), "stale synchronous": run("stale_synchronous", staleness=1)}
    shown = staleness(*traces.values())
    for (name, trace), row in zip(traces.items(), shown.table, strict=True):
        histogram = staleness_histogram(trace)
        total = sum(histogram.values())
        drawn = of_name(shown.figure, name)
        expected = {value: 100 * count / total for value, count in histogram.items()}
        found = {int(x): y for x, y in zip(drawn.x, drawn.y, strict=True) if y}
        assert found == pytest.approx(expected)
        mean = summary(trace).mean_staleness
        assert list(of_name(shown.figure, f"mean of {name}").x) == [mean, mean]
        assert (row["applied gradients"], row["mean staleness (updates)"]) == (total, mean)
        assert (row["largest"], row["fresh (%)"]) == (max(histogram), pytest.approx(expected.get(0, 0.0)))
    looks = [(trace.marker.color, trace.marker.pattern.shape) for trace in shown.figure.data if trace.type == "bar"]
    assert len({colour for colour, _ in looks}) == len({shape for _, shape in looks}) == 2
    labels = [note.y for note in shown.figure.layout.annotations]
    assert len(set(labels)) == 2
    assert shown.figure.layout.yaxis.range[1] > max(labels)
    assert shown.figure.layout.xaxis.title.text == "staleness (updates)"


def test_the_sentence_tells_the_mean_and_the_formula() -> None:
    trace = run("asynchronous", workers=8)
    text = staleness(trace).summary
    assert text.startswith(f"Asynchronous: the mean staleness of 400 gradients is {summary(trace).mean_staleness:.3g} ")
    assert "(the long run has 7)" in text
    assert "long run" not in staleness(run("synchronous")).summary


def test_gradients_in_parts_are_counted_once() -> None:
    trace = run("flexrr", staleness=2)
    (row,) = staleness(trace).table
    assert row["applied gradients"] == len(trace.updates) == 250
    assert row["mean staleness (updates)"] == summary(trace).mean_staleness
    changes = {"communication.servers": 3, "policy": {"kind": "synchronous"}}
    assert "of 250 gradients" in staleness(simulate(example("backup_server").replacing(changes))).summary


def test_many_values_share_bars_and_no_gradient_is_lost() -> None:
    trace = run("asynchronous", workers=256, steps=4)
    drawn = of_name(staleness(trace).figure, "asynchronous")
    assert len(drawn.x) <= 61
    assert sum(drawn.y) == pytest.approx(100.0)
    middle = sum(x * y for x, y in zip(drawn.x, drawn.y, strict=True)) / 100
    assert middle == pytest.approx(summary(trace).mean_staleness, abs=drawn.x[1] - drawn.x[0])
    assert drawn.hovertext[0] == "0 to 4"


def test_a_long_and_thin_tail_shares_the_last_bar() -> None:
    compute = {"distribution": "exponential", "mean": "50 ms"}
    changes = {"steps": 500, "compute": compute, "workload.gradient": "0 B", "policy": {"kind": "asynchronous"}}
    trace = simulate(example("backup_server").replacing(changes | {"cluster.workers": 8}))
    shown = staleness(trace)
    drawn = of_name(shown.figure, "asynchronous")
    histogram, count = staleness_histogram(trace), len(trace.updates)
    last = len(drawn.x) - 2
    assert max(histogram) > 2 * last
    assert list(drawn.y[:-1]) == pytest.approx([100 * histogram.get(value, 0) / count for value in range(last + 1)])
    assert sum(drawn.y) == pytest.approx(100.0)
    assert 0.5 <= drawn.y[-1] <= 1.0
    assert drawn.hovertext[-1] == f"{last + 1} or more"
    assert shown.figure.layout.xaxis.ticktext[-1] == f"{last + 1}+"


def test_asynchronous_runs_stand_beside_the_geometric_law() -> None:
    shown = staleness(run("asynchronous"), run("synchronous"), run("asynchronous", workers=8))
    assert list(of_name(shown.figure, "formula: geometric, 5 workers").y[:3]) == pytest.approx([20.0, 16.0, 12.8])
    assert of_name(shown.figure, "formula: geometric, 8 workers").y[0] == pytest.approx(12.5)
    many = of_name(staleness(run("asynchronous", workers=256, steps=4)).figure, "formula: geometric, 256 workers")
    assert many.y[0] == pytest.approx(100 * (1 - (255 / 256) ** (many.x[1] - many.x[0])))
    names = [trace.name for trace in staleness(run("synchronous"), run("asynchronous", workers=1)).figure.data]
    assert not [name for name in names if name.startswith("formula")]


def test_runs_of_one_policy_are_numbered_or_named() -> None:
    one = run("asynchronous", workers=1)
    assert [row["run"] for row in staleness(one, one).table] == ["asynchronous 1", "asynchronous 2"]
    assert [row["run"] for row in staleness(one, names=["mine"]).table] == ["mine"]
    assert "Mine: the mean staleness of 50 gradients is 0 updates" in staleness(one, names=["mine"]).summary
    with pytest.raises(InputError, match="must name each"):
        staleness(one, names=["a", "b"])
    with pytest.raises(InputError, match="nothing to draw"):
        staleness()


def test_an_empty_run_is_told_beside_others() -> None:
    empty = TraceBuilder().build(workers=2, servers=1, producer="measured")
    shown = staleness(empty, run("synchronous"))
    assert shown.summary.startswith("Measured: no gradient was applied. Synchronous: the mean")
    assert shown.table[0]["mean staleness (updates)"] is None
    assert staleness(empty).summary == "Measured: no gradient was applied."


def test_a_prediction_beside_its_measurement_states_its_error() -> None:
    predicted = run("asynchronous")
    measured = as_measured(run("asynchronous", workers=6))
    ours, theirs = (summary(trace).mean_staleness for trace in (predicted, measured))
    assert ours is not None
    assert theirs is not None
    text = staleness(predicted, measured, names=["predicted", "measured"]).summary
    assert f"The predicted mean is {100 * (1 - ours / theirs):.2g} % below the measured one" in text
    assert f"; {100 * staleness_distance(predicted, measured):.2g} % of the gradients would have to change" in text
    drawn = staleness(measured, predicted, names=["real", "model"]).figure
    assert [trace.marker.color for trace in drawn.data if trace.type == "bar"] == [MEASURED.colour, PREDICTED.colour]
    assert [note.text for note in drawn.layout.annotations] == [f"real: mean {theirs:.3g}", f"model: mean {ours:.3g}"]
    assert "The predicted" not in staleness(predicted, predicted).summary
    waiting = [run("synchronous"), as_measured(run("synchronous"))]
    assert "The predicted mean is 0 updates above the measured one; 0 % of the gradients" in staleness(*waiting).summary
