"""One step of distributed data parallel training on one worker: buckets are reduced while backward continues.

The figure shows backward layer by layer, the time when each bucket's gradients are ready, and each bucket's all-reduce
with its exposed part, which runs after backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.figures import theme
from distsim.figures.arguments import check_policy
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import COMMUNICATION, COMPUTE, HINT, INK, Look, marker, template
from distsim.figures.wording import counted, time_unit
from distsim.policies import Ddp
from distsim.trace import SpanKind, Spans, Trace
from distsim.units import show

FORWARD = Look("forward", COMPUTE.colour, "")
BACKWARD = Look("backward of a layer", theme.BACKWARD.colour, theme.BACKWARD.pattern)
HIDDEN = Look("all-reduce behind backward", COMMUNICATION.colour, COMMUNICATION.pattern)
EXPOSED = Look("all-reduce, exposed", theme.EXPOSED.colour, theme.EXPOSED.pattern)
MOST_LAYERS_NUMBERED = 40
ROWS_NAMED = 20
ROUNDING = 1e-9  # of a sum of times
SEEN = 0.02  # of the length of the drawing: a shorter wait lies under the mark where it begins
CUT_OFF = "The run was cut off before the first backward with an all-reduce had ended"
TOP_PIXELS, BOTTOM_PIXELS = 70, 52


@dataclass(frozen=True)
class Bucket:
    """One bucket on one worker: its all-reduce, and when its gradients were ready (None if unknown); in seconds."""

    number: int
    start_seconds: float
    end_seconds: float
    bytes: float
    ready_seconds: float | None

    def exposed_seconds(self, backward_end: float) -> float:
        """The seconds of the all-reduce after the worker's backward."""
        return self.end_seconds - min(max(self.start_seconds, backward_end), self.end_seconds)


def overlap(trace: Trace, worker: int = 0, step: int | None = None) -> Captioned:
    """Draws a worker's step: compute in the first row, then a row for each bucket in the order of the all-reduces.

    Layers take equal parts of the backward. A bucket's gradients are ready when its last layer has finished.
    step: None takes the first step with an all-reduce.

    Raises InputError where the run has another policy, there is no such worker or step, or the run was cut off before
    the backward of this step ended.

    >>> import distsim
    >>> run = distsim.example("synchronous_ring").replacing({
    ...     "policy": {"kind": "ddp", "bucket": "1 MiB", "first_bucket": "256 KiB"}, "compute": {"mean": "50 ms"},
    ...     "cluster.bandwidth": "1 Gbit/s"})
    >>> overlap(distsim.simulate(run)).summary
    'Worker 0, step 0: of 51.8 ms of all-reduce in 5 buckets, 26.4 ms pass behind the backward and 25.5 ms (49 %) are \
exposed; the step takes 75.5 ms.'
    """
    check_policy("overlap", trace, "ddp", "buckets that leave while backward goes on")
    if not 0 <= worker < trace.workers:
        rule = f"must be 0 to {trace.workers - 1}"
        raise InputError.of("overlap(worker)", worker, rule, "take one of the run's")
    own = trace.spans.where(trace.spans.worker == worker)
    reduces = own.of_kind(SpanKind.ALL_REDUCE)
    if not len(reduces):
        return Captioned(_rows([], 1.0, "ms"), "No all-reduce was recorded, so nothing is drawn.", [])
    chosen = int(reduces.step.min()) if step is None else step
    own = own.where(own.step == chosen)
    compute = own.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
    backward = compute.of_kind(SpanKind.BACKWARD)
    if step is None and len(compute) and not len(backward):
        return Captioned(_rows([], 1.0, "ms"), f"{CUT_OFF}, so nothing is drawn.", [])
    if not len(backward):
        known = f"0 to {int(trace.spans.step.max())}"
        raise InputError.of("overlap(step)", chosen, f"must be one with a backward, of {known}", "take another")
    begin = float(compute.start_seconds.min())
    backward_end = float(backward.end_seconds.max()) - begin
    buckets = _buckets(trace, own, begin)
    length = max([backward_end, *(bucket.end_seconds for bucket in buckets)])
    scale, unit = time_unit(length)
    figure = _rows(buckets, scale * length, unit)
    _add_compute(figure, trace, compute, begin, scale, unit)
    _add_all_reduces(figure, buckets, backward_end, scale, unit)
    _add_ready(figure, buckets, scale, unit)
    end = {"color": INK, "width": 1.5, "dash": "dash"}
    figure.add_vline(x=scale * backward_end, line=end, name="end of backward", showlegend=True)
    table = _table(buckets, backward_end)
    sentence = _sentence(trace.lane(worker), chosen, table, length)
    gradients = trace.contributions
    if not (gradients.applied & (gradients.worker == worker) & (gradients.step == chosen)).any():
        sentence += " No update of this step was recorded: it may have gone on."
    return Captioned(figure, sentence, table)


def _buckets(trace: Trace, own: Spans, begin: float) -> list[Bucket]:
    """The all-reduces in order. If the scenario tells the layers, also the times when the gradients were ready."""
    reduces = own.of_kind(SpanKind.ALL_REDUCE)
    reduces = reduces.where(np.argsort(reduces.start_seconds, kind="stable"))
    ready = _ready(trace, own, len(reduces))
    rows = zip(reduces.start_seconds.tolist(), reduces.end_seconds.tolist(), reduces.bytes.tolist(), ready, strict=True)
    return [
        Bucket(number, start - begin, end - begin, num_bytes, None if there is None else there - begin)
        for number, (start, end, num_bytes, there) in enumerate(rows)
    ]


def _ready(trace: Trace, own: Spans, count: int) -> Sequence[float | None]:
    """The time when each bucket's gradients were ready, on the trace's clock."""
    policy = trace.scenario.policy if "scenario" in trace.metadata else None
    forward, backward = own.of_kind(SpanKind.FORWARD), own.of_kind(SpanKind.BACKWARD)
    if not isinstance(policy, Ddp) or not len(backward):
        return [None] * count
    layers = [len(bucket) for bucket in policy.buckets(trace.scenario.workload.layer_bytes)]
    if len(layers) != count:  # a real model may have other buckets
        return [None] * count
    start = float((forward if len(forward) else backward).start_seconds.min())
    before = float(backward.start_seconds.min()) - start
    length = float(backward.end_seconds.max()) - start - before
    shares = trace.scenario.workload.ready_shares
    return [start + before + length * shares[last - 1] for last in accumulate(layers)]


def _rows(buckets: Sequence[Bucket], length: float, unit: str) -> go.Figure:
    """The axes: compute on top, then a row for each bucket."""
    rows = 1 + len(buckets)
    row_pixels = float(np.clip(420 / rows, 8, 40))
    figure = go.Figure()
    figure.update_layout(
        template=template(), barmode="overlay", hovermode="closest",
        height=TOP_PIXELS + BOTTOM_PIXELS + max(row_pixels * rows, 120.0),
        margin={"t": TOP_PIXELS, "b": BOTTOM_PIXELS, "l": 10, "r": 12}, uniformtext={"minsize": 9, "mode": "hide"},
    )  # fmt: skip
    every = -(-len(buckets) // ROWS_NAMED) or 1
    named = [bucket.number for bucket in buckets if (bucket.number + 1) % every == 0]
    figure.update_yaxes(
        range=[rows - 0.5, -0.5], tickvals=[0, *(1 + number for number in named)], showgrid=False, fixedrange=True,
        ticktext=["compute", *(f"bucket {number}" for number in named)],
    )  # fmt: skip
    figure.update_xaxes(range=[0.0, 1.01 * length], title_text=f"time in the step ({unit})")
    return figure


def _bar(look: Look, rows: Sequence[int], start: Floats, end: Floats, scale: float) -> dict[str, object]:
    """The properties that all bars have: row, times and look."""
    since, until = start * scale, end * scale
    return {
        "orientation": "h", "y": list(rows), "base": since, "x": until - since, "width": 0.8, "name": look.name,
        "marker": marker(look), "customdata": until, "textposition": "inside", "insidetextanchor": "middle",
        "textangle": 0, "insidetextfont": {"color": INK},
    }  # fmt: skip


def _add_compute(figure: go.Figure, trace: Trace, compute: Spans, begin: float, scale: float, unit: str) -> None:
    """Draws forward as one bar, and backward as one bar for each layer, the last layer first."""
    tail = f"<br>%{{base:.3f}} to %{{customdata:.3f}} {unit}<extra></extra>"
    forward, backward = compute.of_kind(SpanKind.FORWARD), compute.of_kind(SpanKind.BACKWARD)
    if len(forward):
        start, end = forward.start_seconds - begin, forward.end_seconds - begin
        figure.add_trace(go.Bar(**_bar(FORWARD, [0] * len(forward), start, end, scale), hovertemplate=f"forward{tail}"))
    shares = trace.scenario.workload.ready_shares if "scenario" in trace.metadata else [1.0]
    layers, first, last = len(shares), backward.start_seconds.min() - begin, backward.end_seconds.max() - begin
    edges = first + (last - first) * np.array([0.0, *shares])
    numbers = [f"<b>{layer}</b>" for layer in reversed(range(layers))]
    figure.add_bar(
        **_bar(BACKWARD, [0] * layers, edges[:-1], edges[1:], scale), hovertext=numbers,
        text=numbers if layers <= MOST_LAYERS_NUMBERED else None,
        hovertemplate=f"backward of layer %{{hovertext}}{tail}",
    )  # fmt: skip


def _add_all_reduces(
    figure: go.Figure, buckets: Sequence[Bucket], backward_end: float, scale: float, unit: str
) -> None:
    """Draws each all-reduce; the end of backward cuts it into a hidden and an exposed part."""
    for look, late in ((HIDDEN, False), (EXPOSED, True)):
        drawn = [
            (bucket, cut, bucket.end_seconds) if late else (bucket, bucket.start_seconds, cut)
            for bucket in buckets
            for cut in [bucket.end_seconds - bucket.exposed_seconds(backward_end)]
            if (cut < bucket.end_seconds if late else cut > bucket.start_seconds)
        ]
        if not drawn:
            continue
        rows = [1 + bucket.number for bucket, _, _ in drawn]
        start, end = np.array([start for _, start, _ in drawn]), np.array([end for _, _, end in drawn])
        sizes = [show(bucket.bytes, "byte") for bucket, _, _ in drawn]
        figure.add_bar(
            **_bar(look, rows, start, end, scale), hovertext=sizes,
            hovertemplate=f"{look.name}, %{{hovertext}}<br>"
            f"%{{base:.3f}} to %{{customdata:.3f}} {unit}<extra></extra>",
        )  # fmt: skip


def _add_ready(figure: go.Figure, buckets: Sequence[Bucket], scale: float, unit: str) -> None:
    """Draws a mark when a bucket's gradients are ready, and a line to the start of its all-reduce."""
    known = [(bucket, bucket.ready_seconds) for bucket in buckets if bucket.ready_seconds is not None]
    if not known:
        return
    x: list[float | None] = []
    y: list[float | None] = []
    for bucket, ready in known:
        x += [scale * ready, scale * max(ready, bucket.start_seconds), None]
        y += [1 + bucket.number, 1 + bucket.number, None]
    figure.add_scatter(
        x=x, y=y, mode="lines", line={"color": INK, "width": 1, "dash": "dot"}, hoverinfo="skip",
        name="waits for its turn or other workers",
        showlegend=any(bucket.start_seconds - ready > SEEN * buckets[-1].end_seconds for bucket, ready in known),
    )  # fmt: skip
    figure.add_scatter(
        x=[scale * ready for _, ready in known], y=[1 + bucket.number for bucket, _ in known], mode="markers",
        name="gradients ready", hovertemplate=f"ready at %{{x:.3f}} {unit}<extra></extra>",
        marker={"symbol": "diamond", "size": 10, "color": HINT, "line": {"color": INK, "width": 1}},
    )  # fmt: skip


def _table(buckets: Sequence[Bucket], backward_end: float) -> list[Row]:
    return [
        {
            "bucket": bucket.number,
            "size (MB)": bucket.bytes / 1e6,
            "ready (ms)": None if bucket.ready_seconds is None else 1e3 * bucket.ready_seconds,
            "all-reduce from (ms)": 1e3 * bucket.start_seconds,
            "to (ms)": 1e3 * bucket.end_seconds,
            "exposed (ms)": 1e3 * bucket.exposed_seconds(backward_end),
        }
        for bucket in buckets
    ]


def _sentence(lane: str, step: int, table: Sequence[Row], length: float) -> str:
    took = sum(float(row["to (ms)"] or 0.0) - float(row["all-reduce from (ms)"] or 0.0) for row in table) / 1e3
    exposed = sum(float(row["exposed (ms)"] or 0.0) for row in table) / 1e3
    hidden = took - exposed if took - exposed > ROUNDING * took else 0.0
    start = f"{lane.capitalize()}, step {step}: "
    if not table:
        return f"{start}nothing is sent; the step takes {show(length, 'second')}."
    buckets = counted(len(table), "bucket")
    return (
        f"{start}of {show(took, 'second')} of all-reduce in {buckets}, {show(hidden, 'second')} pass behind "
        f"the backward and {show(exposed, 'second')} ({100 * exposed / max(took, 1e-300):.0f} %) are exposed; "
        f"the step takes {show(length, 'second')}."
    )
