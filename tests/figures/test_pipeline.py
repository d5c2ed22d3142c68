"""A pipeline as drawn: pieces by micro-batch, bubbles that fill the rest, and what each stage holds."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import pipeline
from distsim.metrics import summary
from distsim.simulation import simulate
from distsim.theory.pipeline import bubble_share, micro_batches_held
from distsim.trace import SpanKind, Trace, TraceBuilder
from tests.figures.test_every_figure import contrast

Schedule = Literal["gpipe", "1f1b"]


def run(schedule: Schedule, micro_batches: int = 8, stages: int = 4, steps: int = 1, **changes: Any) -> Trace:
    """A pipeline of stages alike; hardly any communication unless `changes` say otherwise."""
    policy = {"kind": "pipeline", "schedule": schedule, "micro_batches": micro_batches}
    table = {
        "cluster.workers": stages, "policy": policy, "steps": steps, "workload.activation": "8 kB",
        "compute": {"mean": "60 ms"}, "cluster.latency": "1 ns",
    }  # fmt: skip
    return simulate(example("synchronous_ring").replacing(table | changes))


def of_name(figure: go.Figure, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_every_piece_is_a_bar_where_and_when_it_ran(schedule: Schedule) -> None:
    trace = run(schedule)
    figure = pipeline(trace).figure
    for name, kind in (("forward", SpanKind.FORWARD), ("backward", SpanKind.BACKWARD)):
        spans, drawn = trace.spans.of_kind(kind), of_name(figure, name)
        expected = zip(
            spans.worker.tolist(), spans.label.tolist(), 1e3 * spans.start_seconds, 1e3 * spans.end_seconds, strict=True
        )
        found = {
            (stage, micro): (base, base + x)
            for stage, micro, base, x in zip(drawn.y, drawn.text, drawn.base, drawn.x, strict=True)
        }
        assert len(found) == 4 * 8
        for stage, label, start, end in expected:
            number = label.removeprefix("micro-batch ")
            assert found[stage, number] == pytest.approx((start, end))
    assert figure.layout.xaxis2.title.text == "time in the step (ms)"
    assert list(figure.layout.yaxis.ticktext) == [f"stage {stage}" for stage in range(4)]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("bandwidth", ["100 Gbit/s", "20 Mbit/s"])
def test_bubbles_are_the_rest_of_the_time_as_in_the_metrics(schedule: Schedule, bandwidth: str) -> None:
    trace = run(schedule, **{"cluster.bandwidth": bandwidth})
    shown = pipeline(trace)
    numbers = summary(trace)
    idle = (numbers.idle_share or 0.0) + (numbers.exposed_communication_share or 0.0)
    share = np.mean([row["bubbles (%)"] for row in shown.table])
    assert share == pytest.approx(100 * idle)
    bubbles = of_name(shown.figure, "bubble")
    assert sum(bubbles.x) == pytest.approx(1e3 * 4 * idle * trace.total_seconds)
    assert f"{share:.0f} % of it is bubbles" in shown.summary
    everything = sum(sum(of_name(shown.figure, name).x) for name in ("forward", "backward", "bubble"))
    assert everything == pytest.approx(1e3 * 4 * trace.total_seconds)


def test_without_communication_bubbles_are_the_formulas() -> None:
    for stages, micro_batches in ((4, 8), (3, 1), (2, 5)):
        table = pipeline(run("1f1b", micro_batches, stages)).table
        found = np.mean([row["bubbles (%)"] for row in table])
        assert found == pytest.approx(100 * bubble_share(stages, micro_batches), rel=2e-3)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_stage_holds_at_most_what_the_formula_says(schedule: Schedule) -> None:
    shown = pipeline(run(schedule))
    most = [row["holds at most (micro-batches)"] for row in shown.table]
    assert most == [micro_batches_held(schedule, stage, 4, 8) for stage in range(4)]
    held = of_name(shown.figure, "micro-batches held")
    told = np.array(held.customdata)
    assert [told[told[:, 0] == stage, 1].max() for stage in range(4)] == most
    drawn = ~np.isnan(np.array(held.y))
    of_stage, count = told[drawn].T
    assert np.array(held.y)[drawn] == pytest.approx(of_stage + 0.45 - 0.9 * count / max(most))
    assert [int(text) for text in of_name(shown.figure, "micro-batches held, at most").text] == most
    assert f"A stage holds at most {max(most)} micro-batches" in shown.summary


def test_what_is_held_begins_with_a_forward_and_ends_with_a_backward() -> None:
    trace = run("1f1b", micro_batches=1, stages=2)
    held = of_name(pipeline(trace).figure, "micro-batches held")
    for stage in (0, 1):
        own = trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
        own = own.where(own.worker == stage)
        since, *_, until = sorted(
            x for x, told in zip(held.x, held.customdata, strict=True) if tuple(told) == (stage, 1)
        )
        assert since == pytest.approx(1e3 * own.start_seconds.min())
        assert until == pytest.approx(1e3 * own.end_seconds.max())


def test_a_later_step_counts_its_time_from_its_own_start() -> None:
    trace = run("gpipe", steps=3)
    first, last = pipeline(trace), pipeline(trace, step=2)
    assert list(of_name(last.figure, "forward").base) == pytest.approx(list(of_name(first.figure, "forward").base))
    assert ", step 2 takes " in last.summary
    with pytest.raises(InputError, match="must be one of the run's, 0 to 2"):
        pipeline(trace, step=3)


@pytest.mark.parametrize("stages", [1, 256])
def test_one_stage_and_256(stages: int) -> None:
    shown = pipeline(run("1f1b", micro_batches=2, stages=stages))
    assert len(of_name(shown.figure, "forward").x) == 2 * stages
    assert shown.figure.layout.height < 1000
    names = [trace.name for trace in shown.figure.data]
    assert ("bubble" in names) == (stages > 1)
    assert len(shown.figure.layout.yaxis.tickvals) <= 30


def test_looks_differ_without_colour_too() -> None:
    """A bubble is hatched; a backward is much lighter than a forward."""
    figure = pipeline(run("1f1b")).figure
    forward, backward, bubble = (of_name(figure, name).marker for name in ("forward", "backward", "bubble"))
    assert bubble.pattern.shape not in (forward.pattern.shape, backward.pattern.shape)
    assert contrast(forward.color, backward.color) > 1.6


def test_a_run_without_micro_batches_is_told() -> None:
    nothing = "No micro-batch was recorded, so nothing is drawn."
    assert pipeline(TraceBuilder().build(workers=2, servers=0, producer="measured")).summary == nothing
    with pytest.raises(InputError, match="has no micro-batches, which this figure shows"):
        pipeline(simulate(example("synchronous_ring")))


def test_a_measured_step_without_an_update_ends_with_its_last_piece() -> None:
    builder = TraceBuilder()
    builder.span(0, SpanKind.FORWARD, 0, 0.01, 0.02, label="micro-batch 0")
    builder.span(0, SpanKind.BACKWARD, 0, 0.03, 0.05, label="micro-batch 0")
    shown = pipeline(builder.build(workers=1, servers=0, producer="measured"))
    assert shown.table[0]["bubbles (ms)"] == pytest.approx(20.0)
    assert list(of_name(shown.figure, "bubble").base) == pytest.approx([0.0, 20.0])
