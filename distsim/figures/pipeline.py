"""One step of a pipeline: for each stage, its work, its bubbles, and the micro-batches that it holds in memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from distsim.arrays import Flags, Floats, Indices, Integers
from distsim.errors import InputError
from distsim.figures.arguments import check_policy
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import BACKWARD, COMPUTE, HELD, INK, SMALL, WAIT, Look, marker, template
from distsim.figures.wording import counted, time_unit
from distsim.policies import Pipeline
from distsim.theory.pipeline import bubble_share
from distsim.trace import SpanKind, Spans, Trace
from distsim.units import show

FORWARD = Look("forward", COMPUTE.colour, "")
BUBBLE = Look("bubble", WAIT.colour, WAIT.pattern)
MOST_NUMBERS = 64  # if there are more bars of one kind, bars show no numbers: a browser takes 2 ms for each number
MOST_PATTERNS = 160  # if there are more bars of one kind, bars are plain
LANE, SHARE_OF_LANE = 0.8, 0.9
THIN_PIXELS = 10.0  # in thinner lanes, bars have no outline and no pattern, and fill the lane
MICRO_BATCH = re.compile(r"micro-batch (\d+)")
SAME = 1e-9  # as a share of the step's time; shorter gaps are rounding errors
TOP_PIXELS, BOTTOM_PIXELS, GAP_PIXELS = 96, 52, 44


@dataclass(frozen=True)
class Pieces:
    """The work of the stages in one step: spans with the number of the micro-batch; seconds from the step's start."""

    stage: Indices
    kind: NDArray[np.int8]
    micro: Integers
    start_seconds: Floats
    end_seconds: Floats

    def where(self, mask: Flags) -> Pieces:
        """The pieces that the mask selects."""
        return Pieces(*(column[mask] for column in self.__dict__.values()))


def pipeline(trace: Trace, step: int = 0) -> Captioned:
    """Draws the stages over one step: forwards and backwards by micro-batch, bubbles, and held activations.

    A bubble is time in which a stage runs neither a forward nor a backward; its messages and sums are bubble time, too.
    A stage holds a micro-batch's activations from the start of the forward to the end of the backward. Of a stage of
    several workers, the first one is drawn.

    Raises InputError where the run has another policy or no such step.

    >>> import distsim
    >>> run = distsim.example("synchronous_ring").replacing({
    ...     "policy": {"kind": "pipeline", "micro_batches": 8}, "workload.activation": "1 MiB",
    ...     "compute": {"mean": "50 ms"}, "cluster.bandwidth": "100 Gbit/s"})
    >>> pipeline(distsim.simulate(run)).summary
    'With 4 stages and 8 micro-batches, step 0 takes 70 ms. 29 % of it is bubbles (27 % without communication). \
A stage holds at most 8 micro-batches.'
    """
    check_policy("pipeline", trace, "pipeline", "micro-batches")
    spans = trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
    spans = spans.where((spans.worker < trace.workers) & (np.char.find(spans.label, "micro-batch") >= 0))
    width = _width(trace)
    stages = trace.workers // width
    spans = spans.where(spans.worker % width == 0)
    if not len(spans):
        return Captioned(_panels(stages, 1.0, "ms"), "No micro-batch was recorded, so nothing is drawn.", [])
    own = spans.where(spans.step == step)
    if not len(own):
        rule = f"must be one of the run's, 0 to {int(spans.step.max())}"
        raise InputError.of("pipeline(step)", step, rule, "take an earlier one")
    begin, end = _bounds(trace, own, step)
    pieces = _pieces(own, begin, width)
    length = end - begin
    bubbles = _bubbles(pieces, stages, length)
    held = _held(pieces, length)
    scale, unit = time_unit(length)
    figure = _panels(stages, scale * length, unit)
    _add_bubbles(figure, bubbles, scale, unit)
    for look, kind in ((FORWARD, SpanKind.FORWARD), (BACKWARD, SpanKind.BACKWARD)):
        _add_pieces(figure, look, pieces.where(pieces.kind == kind), stages, scale, unit)
    _add_held(figure, held, stages, scale, unit)
    table = _table(bubbles, held, length)
    sentence = _sentence(pieces, table, step, length)
    if width > 1:
        sentence += f" Drawn: the first of the {width} workers of each stage."
    if step + 1 not in trace.updates.version:
        sentence += " No update of this step was recorded: it may have gone on."
    return Captioned(figure, sentence, table)


def _width(trace: Trace) -> int:
    """The workers of each stage; a trace that names no scenario has stages of one."""
    policy = trace.scenario.policy if "scenario" in trace.metadata else None
    return policy.width if isinstance(policy, Pipeline) else 1


def _bounds(trace: Trace, own: Spans, step: int) -> tuple[float, float]:
    """The start and end of a step: the previous update (or 0), and its own update (or the end of its last piece)."""
    times = dict(zip(trace.updates.version.tolist(), trace.updates.time_seconds.tolist(), strict=True))
    begin = min(times.get(step, 0.0), float(own.start_seconds.min()))
    return begin, max(times.get(step + 1, 0.0), float(own.end_seconds.max()))


def _pieces(own: Spans, begin: float, width: int) -> Pieces:
    found = [MICRO_BATCH.search(label) for label in own.label.tolist()]
    micro = np.array([int(number[1]) if number else -1 for number in found])
    order = np.lexsort((own.start_seconds, own.worker))
    pieces = Pieces(own.worker // width, own.kind, micro, own.start_seconds - begin, own.end_seconds - begin)
    return Pieces(*(column[order] for column in pieces.__dict__.values()))


def _bubbles(pieces: Pieces, stages: int, length: float) -> list[list[tuple[float, float]]]:
    """For each stage, the times without a forward or backward, as (start, end) in seconds."""
    found = []
    for stage in range(stages):
        own = pieces.where(pieces.stage == stage)
        starts, ends = np.append(own.start_seconds, length), np.insert(own.end_seconds, 0, 0.0)
        idle = starts - ends > SAME * length
        found.append(list(zip(ends[idle].tolist(), starts[idle].tolist(), strict=True)))
    return found


def _held(pieces: Pieces, length: float) -> list[tuple[int, float, float, int]]:
    """(stage, from, to, micro-batches) where a stage holds any; to the end if a micro-batch has no backward."""
    found: list[tuple[int, float, float, int]] = []
    for stage in np.unique(pieces.stage).tolist():
        own = pieces.where(pieces.stage == stage)
        forward, backward = (own.where(own.kind == kind) for kind in (SpanKind.FORWARD, SpanKind.BACKWARD))
        # A piece may have several parts. At equal times, an end counts before the start of the next forward.
        begun = {micro: forward.start_seconds[forward.micro == micro].min() for micro in np.unique(forward.micro)}
        over = {micro: backward.end_seconds[backward.micro == micro].max() for micro in np.unique(backward.micro)}
        changes = sorted([*((float(at), +1) for at in begun.values()), *((float(at), -1) for at in over.values())])
        count = 0
        for (since, change), (until, _) in pairwise([*changes, (length, 0)]):
            count += change
            if count > 0 and until > since:
                found.append((stage, since, until, count))
    return found


def _lane_pixels(stages: int) -> float:
    return float(np.clip(320 / stages, 1.5, 34))


def _bar(look: Look, stages: int, count: int) -> dict[str, object]:
    """The look of `count` bars in their lanes. In thin lanes, bars fill the lane. Thin bars and many bars are plain."""
    thin = _lane_pixels(stages) < THIN_PIXELS
    plain = {"line": {"width": 0}, "pattern": {"shape": ""}} if thin or count > MOST_PATTERNS else {}
    return {
        "orientation": "h", "name": look.name, "marker": marker(look) | plain, "width": 1.0 if thin else LANE,
        "textposition": "inside", "insidetextanchor": "middle", "textangle": 0, "insidetextfont": {"color": INK},
    }  # fmt: skip


def _panels(stages: int, length: float, unit: str) -> go.Figure:
    """Empty lanes: above for forwards and backwards, below for held micro-batches."""
    lane = _lane_pixels(stages)
    inner = 2 * lane * stages + GAP_PIXELS
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=GAP_PIXELS / inner)
    figure.update_layout(
        template=template(), barmode="overlay", height=TOP_PIXELS + BOTTOM_PIXELS + inner, hovermode="closest",
        margin={"t": TOP_PIXELS, "b": BOTTOM_PIXELS, "l": 10, "r": 12}, legend={"y": 1.0 + 26 / inner},
        uniformtext={"minsize": 9, "mode": "hide"},
    )  # fmt: skip
    every = -(-stages // max(1, int(lane * stages / 14)))
    named = list(range(0, stages, every))
    figure.update_yaxes(
        range=[stages - 0.5, -0.5], tickvals=named, ticktext=[f"stage {stage}" for stage in named], showgrid=False,
        fixedrange=True,
    )  # fmt: skip
    figure.update_xaxes(range=[0.0, length], minallowed=0.0, maxallowed=length)
    figure.update_xaxes(title_text=f"time in the step ({unit})", row=2, col=1)
    for axis, heading in (("", "forward and backward, by number of the micro-batch"), ("2", "micro-batches held")):
        figure.add_annotation(
            text=f"<b>{heading}</b>", x=0.0, xref="paper", xanchor="left", y=1.0, yref=f"y{axis} domain",
            yanchor="bottom", yshift=3, showarrow=False, font_size=SMALL + 1,
        )  # fmt: skip
    return figure


def _add_pieces(figure: go.Figure, look: Look, own: Pieces, stages: int, scale: float, unit: str) -> None:
    micro = [str(number) for number in own.micro.tolist()]
    figure.add_bar(
        **_bar(look, stages, len(own.stage)), y=own.stage, base=scale * own.start_seconds,
        x=scale * (own.end_seconds - own.start_seconds), hovertext=micro, customdata=scale * own.end_seconds,
        text=micro if len(own.stage) <= MOST_NUMBERS else None,
        hovertemplate=f"<b>stage %{{y}}: {look.name} of micro-batch</b> %{{hovertext}}<br>"
        f"%{{base:.3f}} to %{{customdata:.3f}} {unit}<extra></extra>",
        row=1, col=1,
    )  # fmt: skip


def _add_bubbles(figure: go.Figure, bubbles: Sequence[Sequence[tuple[float, float]]], scale: float, unit: str) -> None:
    stages = len(bubbles)
    flat = [(stage, start, end) for stage, own in enumerate(bubbles) for start, end in own]
    if not flat:
        return
    stage, start, end = (np.array(column) for column in zip(*flat, strict=True))
    figure.add_bar(
        **_bar(BUBBLE, stages, len(flat)), y=stage, base=scale * start, x=scale * (end - start),
        hovertemplate=f"stage %{{y}}: bubble<br>from %{{base:.3f}} {unit}<extra></extra>",
        row=1, col=1,
    )  # fmt: skip


def _add_held(
    figure: go.Figure, held: Sequence[tuple[int, float, float, int]], stages: int, scale: float, unit: str
) -> None:
    """Draws a step line for each stage, from the floor of its lane; the height is the number of held micro-batches.

    All stages are one trace: a browser draws a line of hundreds of steps as fast as a single bar.
    """
    if not held:
        return
    most = max(count for *_, count in held)
    x: list[float] = []
    y: list[float] = []
    shown: list[tuple[int, int]] = []
    peaks: dict[int, tuple[float, int]] = {}  # by stage: the middle of the first time with the most, and how many

    def add(seconds: float, stage: int, count: int) -> None:
        x.append(scale * seconds)
        y.append(stage + SHARE_OF_LANE * (0.5 - count / most))
        shown.append((stage, count))

    for stage in range(stages):
        own = [(since, until, count) for of, since, until, count in held if of == stage]
        if not own:
            continue
        for place, (since, until, count) in enumerate(own):
            if place == 0 or since > own[place - 1][1]:  # the stage held nothing before
                add(since, stage, 0)
            add(since, stage, count)
            add(until, stage, count)
            if place + 1 == len(own) or own[place + 1][0] > until:
                add(until, stage, 0)
        add(own[0][0], stage, 0)
        x.append(np.nan)
        y.append(np.nan)
        shown.append((stage, 0))
        highest = max(count for *_, count in own)
        peaks[stage] = next(((since + until) / 2, count) for since, until, count in own if count == highest)
    figure.add_scatter(
        x=x, y=y, customdata=shown, mode="lines", name=HELD.name, fill="toself", fillcolor=HELD.colour,
        line={"color": INK, "width": 0.6}, hoveron="points",
        hovertemplate="<b>stage %{customdata[0]} holds %{customdata[1]}</b><br>"
        f"at %{{x:.3f}} {unit}<extra></extra>",
        row=2, col=1,
    )  # fmt: skip
    if _lane_pixels(stages) < THIN_PIXELS:
        return
    figure.add_scatter(
        x=[scale * seconds for seconds, _ in peaks.values()],
        y=[stage + SHARE_OF_LANE * (0.5 - count / most / 2) for stage, (_, count) in peaks.items()],
        text=[str(count) for _, count in peaks.values()], mode="text", name=f"{HELD.name}, at most", showlegend=False,
        hoverinfo="skip", row=2, col=1,
    )  # fmt: skip


def _table(
    bubbles: Sequence[Sequence[tuple[float, float]]],
    held: Sequence[tuple[int, float, float, int]],
    length: float,
) -> list[Row]:
    most = dict.fromkeys(range(len(bubbles)), 0)
    for stage, _, _, count in held:
        most[stage] = max(most[stage], count)
    rows: list[Row] = []
    for stage, own in enumerate(bubbles):
        idle = sum(end - start for start, end in own)
        rows.append(
            {
                "stage": stage,
                "computes (ms)": 1e3 * (length - idle),
                "bubbles (ms)": 1e3 * idle,
                "bubbles (%)": 100.0 * idle / length,
                "holds at most (micro-batches)": most[stage],
            }
        )
    return rows


def _sentence(pieces: Pieces, table: Sequence[Row], step: int, length: float) -> str:
    stages, micro_batches = len(table), len(np.unique(pieces.micro))
    share = float(np.mean([float(row["bubbles (%)"] or 0.0) for row in table]))
    most = max(int(row["holds at most (micro-batches)"] or 0) for row in table)
    return (
        f"With {counted(stages, 'stage')} and {counted(micro_batches, 'micro-batch')}, step {step} takes "
        f"{show(length, 'second')}. {share:.0f} % of it is bubbles "
        f"({100 * bubble_share(stages, micro_batches):.0f} % without communication). "
        f"A stage holds at most {counted(most, 'micro-batch')}."
    )
