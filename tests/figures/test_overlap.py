"""A data-parallel step as drawn: layers, buckets ready, all-reduces and their exposed part."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from distsim.errors import InputError
from distsim.examples import example
from distsim.figures import overlap
from distsim.metrics import worker_seconds
from distsim.simulation import simulate
from distsim.theory.overlap import bucket_ready_seconds
from distsim.trace import SpanKind, Trace, TraceBuilder

POLICY = {"kind": "ddp", "bucket": "1 MiB", "first_bucket": "256 KiB"}
HIDDEN, EXPOSED = "all-reduce behind backward", "all-reduce, exposed"


def run(**changes: Any) -> Trace:
    """Four workers whose gradients leave in five buckets; keys with a double underscore for a dot."""
    table = {"policy": POLICY, "cluster.bandwidth": "1 Gbit/s", "steps": 3}
    return simulate(
        example("synchronous_ring").replacing(table | {key.replace("__", "."): changes[key] for key in changes})
    )


def of_name(figure: go.Figure, name: str) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def of_worker(trace: Trace, kind: SpanKind, worker: int, step: int) -> Any:
    """The spans of this kind."""
    spans = trace.spans.of_kind(kind)
    return spans.where((spans.worker == worker) & (spans.step == step))


def test_backward_is_cut_into_layers_the_last_first() -> None:
    trace = run(workload__layers=8)
    figure = overlap(trace, worker=1).figure
    layers = of_name(figure, "backward of a layer")
    assert list(layers.text) == [f"<b>{layer}</b>" for layer in range(7, -1, -1)]
    backward = of_worker(trace, SpanKind.BACKWARD, 1, 0)
    assert layers.base[0] == pytest.approx(1e3 * backward.start_seconds[0])
    assert list(layers.x) == pytest.approx([1e3 * (backward.end_seconds - backward.start_seconds)[0] / 8] * 8)
    assert set(layers.y) == set(of_name(figure, "forward").y) == {0}


def test_each_bucket_has_a_row_with_its_all_reduce_cut_at_the_end_of_backward() -> None:
    trace = run()
    shown = overlap(trace)
    reduces = of_worker(trace, SpanKind.ALL_REDUCE, 0, 0)
    end = of_worker(trace, SpanKind.BACKWARD, 0, 0).end_seconds[0]
    pieces = [of_name(shown.figure, name) for name in (HIDDEN, EXPOSED)]
    length = dict.fromkeys(range(1, 6), 0.0)
    for piece in pieces:
        for row, x in zip(piece.y, piece.x, strict=True):
            length[row] += x
    assert list(length.values()) == pytest.approx(1e3 * (reduces.end_seconds - reduces.start_seconds))
    assert max(pieces[0].base + pieces[0].x) <= 1e3 * end + 1e-9
    assert min(pieces[1].base) >= 1e3 * end - 1e-9
    assert pieces[0].marker.pattern.shape != pieces[1].marker.pattern.shape
    assert shown.figure.layout.shapes[0].x0 == pytest.approx(1e3 * end)
    assert list(shown.figure.layout.yaxis.ticktext) == ["compute", *(f"bucket {number}" for number in range(5))]


def test_marks_tell_when_gradients_are_ready() -> None:
    trace = run(compute={"mean": "60 ms"})
    shown = overlap(trace)
    layers = [len(bucket) for bucket in trace.scenario.policy.buckets(trace.scenario.workload.layer_bytes)]
    expected = 1e3 * bucket_ready_seconds(0.02, 0.04, layers)
    ready = of_name(shown.figure, "gradients ready")
    assert list(ready.x) == pytest.approx(expected)
    assert list(ready.y) == [1, 2, 3, 4, 5]
    begins = [row["all-reduce from (ms)"] for row in shown.table]
    assert all(begin >= there - 1e-9 for begin, there in zip(begins, expected, strict=True))
    waits = of_name(shown.figure, "waits for its turn or other workers")
    assert list(waits.x[1::3]) == pytest.approx(begins)


@pytest.mark.parametrize(("bandwidth", "seen"), [("300 Mbit/s", True), ("1000 Gbit/s", False)])
def test_the_legend_names_the_end_of_backward_and_only_waits_that_are_seen(bandwidth: str, seen: bool) -> None:
    figure = overlap(run(cluster__bandwidth=bandwidth, compute={"distribution": "constant", "mean": "60 ms"})).figure
    assert [shape.name for shape in figure.layout.shapes if shape.showlegend] == ["end of backward"]
    assert of_name(figure, "waits for its turn or other workers").showlegend == seen


def test_nothing_hidden_is_told_as_nothing() -> None:
    trace = run(workload__gradient="0 B", compute={"distribution": "constant", "mean": "60 ms"})
    for worker in range(trace.workers):
        assert re.search(r"[a-z], 0 s pass behind|[1-9][\d.]* [mu]?s pass behind", overlap(trace, worker).summary)


@pytest.mark.parametrize("bandwidth", ["300 Mbit/s", "2 Gbit/s", "100 Gbit/s"])
def test_the_exposed_part_is_the_metrics_exposed_communication(bandwidth: str) -> None:
    trace = run(cluster__bandwidth=bandwidth)
    for worker in range(4):
        exposed = sum(row["exposed (ms)"] or 0.0 for step in range(3) for row in overlap(trace, worker, step).table)
        assert exposed == pytest.approx(1e3 * worker_seconds(trace)["communication"][worker])


def test_the_sentence_tells_what_is_hidden_and_what_is_exposed() -> None:
    shown = overlap(run(), worker=2, step=1)
    took = sum(row["to (ms)"] - row["all-reduce from (ms)"] for row in shown.table)
    exposed = sum(row["exposed (ms)"] for row in shown.table)
    assert shown.summary.startswith(f"Worker 2, step 1: of {took:.3g} ms of all-reduce in 5 buckets, ")
    assert f" and {exposed:.3g} ms ({100 * exposed / took:.0f} %) are exposed" in shown.summary


def test_the_first_step_that_communicates_is_drawn_and_others_can_be() -> None:
    trace = run(policy=POLICY | {"accumulate": 3})
    assert overlap(trace).summary.startswith("Worker 0, step 2: of")
    alone = overlap(trace, step=0)
    assert "nothing is sent; the step takes" in alone.summary
    assert {drawn.name for drawn in alone.figure.data} == {"forward", "backward of a layer"}


@pytest.mark.parametrize("workers", [1, 256])
def test_one_worker_and_256(workers: int) -> None:
    shown = overlap(run(cluster__workers=workers, steps=1))
    assert len(shown.table) == 5
    assert sum(row["exposed (ms)"] for row in shown.table) >= 0.0


def test_many_buckets_have_thin_rows_and_few_names() -> None:
    figure = overlap(run(workload__layers=60, policy=POLICY | {"bucket": "8 KiB", "first_bucket": "8 KiB"})).figure
    assert len(of_name(figure, "gradients ready").x) == 60
    assert len(figure.layout.yaxis.ticktext) <= 21
    assert of_name(figure, "backward of a layer").text is None
    assert figure.layout.height < 700


def test_a_measured_run_whose_layers_are_not_known_has_no_ready_marks() -> None:
    builder = TraceBuilder()
    builder.span(0, SpanKind.FORWARD, 0, 1.0, 1.01)
    builder.span(0, SpanKind.BACKWARD, 0, 1.01, 1.03)
    builder.span(0, SpanKind.ALL_REDUCE, 0, 1.02, 1.05, 1e6, "bucket 0")
    shown = overlap(builder.build(workers=1, servers=0, producer="measured"))
    assert "gradients ready" not in [drawn.name for drawn in shown.figure.data]
    assert list(of_name(shown.figure, EXPOSED).base) == pytest.approx([30.0])
    assert list(of_name(shown.figure, EXPOSED).x) == pytest.approx([20.0])
    assert shown.table[0]["ready (ms)"] is None
    assert np.isclose(float(shown.table[0]["exposed (ms)"] or 0.0), 20.0)


def test_what_there_is_not_is_told_or_refused() -> None:
    empty = TraceBuilder().build(workers=2, servers=0, producer="measured")
    assert overlap(empty).summary == "No all-reduce was recorded, so nothing is drawn."
    with pytest.raises(InputError, match="must be 0 to 3"):
        overlap(run(), worker=4)
    with pytest.raises(InputError, match="one with a backward, of 0 to 2"):
        overlap(run(), step=9)
    with pytest.raises(InputError, match="has no buckets that leave while backward goes on"):
        overlap(simulate(example("synchronous_ring")))
