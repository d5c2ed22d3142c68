"""The sequence diagram of a few steps: lifelines of servers and workers, time downwards, an arrow for each message."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.figures.captioned import Captioned
from distsim.figures.sequence_links import STRIP, add_links, links
from distsim.figures.sequence_messages import MessageKind, Messages, messages, order, places, window
from distsim.figures.sequence_words import sentence, table
from distsim.figures.theme import (
    APPLY,
    CATEGORIES,
    CATEGORY_OF,
    COMMUNICATION,
    COMPUTE,
    DROPPED,
    INK,
    LANE,
    LETTER_WIDTH,
    NARROW_PIXELS,
    PAPER,
    PAUSES,
    RUNS,
    SMALL,
    WAIT,
    marker,
    template,
)
from distsim.figures.timeline_bars import drops
from distsim.figures.wording import time_unit
from distsim.trace import SpanKind, Spans, Trace
from distsim.units import show

HEIGHT_PIXELS, LABEL_PIXELS = 640, 18  # of the figure, and of a label
BAR_WIDTH = {COMPUTE: 0.16, WAIT: 0.08, APPLY: 0.16}
MOST_LABELS = 40  # if there are more messages, only hovering shows their texts
LIFELINES_LABELLED = 12
MANY_LIFELINES = 40  # if there are more, bars have no outline and arrows are thin
LABEL_ASIDE: dict[MessageKind, float] = {"push": 0.42, "answer": 0.58, "transfer": 0.5}  # columns from the worker
STEPS = range(2)
LINES: dict[MessageKind, dict[str, object]] = {
    "push": {"width": 1.5},
    "answer": {"width": 1.5, "dash": "dash"},
    "transfer": {"width": 1.2},
}
UPDATE_PLACES = ("top right", "bottom left", "top left", "bottom right")  # of the versions of updates close together


def sequence(
    trace: Trace,
    steps: Sequence[int] | None = None,
    start_seconds: float | None = None,
    end_seconds: float | None = None,
) -> Captioned:
    """Draws all messages between ranks in some steps of a run or in a window of time.

    steps: local steps, by default the first two. The picture begins when the first worker starts these steps, and ends
    when the last worker ends them. start_seconds, end_seconds: the window, instead of steps.

    Raises InputError where the run has no such step, the window is empty or not finite, or both are given.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("backup_server"))
    >>> sequence(trace, range(1)).summary.split(": ")[1][:46]
    '5 pushes of 4.19 MB, 5 answers of 4.19 MB and '
    """
    if steps is not None and (start_seconds, end_seconds) != (None, None):
        window_given = (start_seconds, end_seconds)
        raise InputError.of("sequence(steps, window)", (steps, window_given), "are two ways to say it", "give one")
    if not len(trace.spans):
        return Captioned(_empty(trace, 0.0, 1.0, 1e3, "ms"), "Nothing was recorded, so nothing is drawn.", [])
    if (start_seconds, end_seconds) == (None, None):
        start, end = window(trace, STEPS if steps is None else steps)
    else:
        start = 0.0 if start_seconds is None else start_seconds
        end = float(trace.spans.end_seconds.max()) if end_seconds is None else end_seconds
    if not (math.isfinite(start) and math.isfinite(end)):
        rule = "must be finite numbers"
        raise InputError.of("sequence(start_seconds, end_seconds)", (start, end), rule, "give seconds of the run")
    if not end > start:
        raise InputError.of("sequence(start_seconds, end_seconds)", (start, end), "must not be empty", "end it later")
    first, last = trace.bounds_seconds
    if start >= last or end <= first:
        rule = f"must overlap the run, which lasts from {first:.4g} to {last:.4g} s"
        raise InputError.of("sequence(start_seconds, end_seconds)", (start, end), rule, "take a part of it")
    start = max(start, first)
    scale, unit = time_unit(end - start)
    found = messages(trace, start, end)
    figure = _empty(trace, start, end, scale, unit)
    spans = trace.spans.where((trace.spans.end_seconds > start) & (trace.spans.start_seconds < end))
    _add_bars(figure, trace, spans, scale, unit, observed=bool(found))
    use = links(trace, found, start, end)
    add_links(figure, trace, use, scale, unit)
    for kind, own in found.items():
        _add_arrows(figure, trace, kind, own, scale, unit, labelled=sum(map(len, found.values())) <= MOST_LABELS)
    _add_drops(figure, trace, start, end, scale, unit)
    _add_updates(figure, trace, start, end, scale, unit)
    rows = table(trace, spans, found, start, end)
    coloured = len(places(trace)) <= MANY_LIFELINES
    return Captioned(figure, sentence(trace, found, rows, start, end, use, coloured=coloured), rows)


def of_files(trace: Trace, step: int = 0) -> Captioned:
    """The sequence diagram of one step, for `distsim figure`."""
    return sequence(trace, range(step, step + 1))


def _empty(trace: Trace, start: float, end: float, scale: float, unit: str) -> go.Figure:
    """Lifelines with their names, and the axis of time."""
    ranks, at = order(trace), places(trace)
    figure = go.Figure()
    figure.update_layout(
        template=template(), height=HEIGHT_PIXELS, barmode="overlay", hovermode="closest",
        margin={"t": 96, "b": 20, "l": 10, "r": 12}, legend={"y": 1.0 + 36 / (HEIGHT_PIXELS - 116)},
    )  # fmt: skip
    last = end + 0.02 * (end - start)  # arrivals at the end stay visible
    every = -(-len(ranks) // LIFELINES_LABELLED)
    named = [rank for rank in ranks if rank >= trace.workers or rank % every == 0]
    between = "<br>" if len(named) > 8 else " "
    figure.update_xaxes(
        side="top", range=[-0.6 * max(1.0, len(ranks) / 16), at.max() + 0.6], fixedrange=True, tickangle=0,
        tickvals=[at[rank] for rank in named], ticktext=[trace.lane(rank).replace(" ", between) for rank in named],
        tickfont_size=SMALL + 1, gridcolor=LANE,
    )  # fmt: skip
    figure.update_yaxes(
        title_text=f"time ({unit})", range=[last * scale, start * scale], minallowed=start * scale,
        maxallowed=last * scale, showgrid=False,
    )  # fmt: skip
    return figure


def _add_bars(figure: go.Figure, trace: Trace, spans: Spans, scale: float, unit: str, *, observed: bool) -> None:
    """Draws bars by category. Communication gets bars only if no transfers were recorded, which would be arrows."""
    at = places(trace)
    many = len(at) > MANY_LIFELINES
    category = np.array([CATEGORIES.index(CATEGORY_OF[kind]) for kind in SpanKind])[spans.kind]
    for number, look in enumerate(CATEGORIES):
        own = spans.where(category == number)
        if not len(own) or (look is COMMUNICATION and observed):
            continue
        drawn = marker(look) | ({"line": {"width": 0}} if many else {})
        kinds = [list(SpanKind)[kind].words for kind in own.kind]
        figure.add_bar(
            x=at[own.worker], base=own.start_seconds * scale,
            y=(own.end_seconds - own.start_seconds) * scale,
            width=0.8 if many else BAR_WIDTH.get(look, 0.12), marker=drawn,
            name=look.name, customdata=own.end_seconds * scale,
            hovertext=[
                f"{trace.lane(rank)}: {kind}" + ("" if look in PAUSES else f", step {step}")
                for rank, kind, step in zip(own.worker.tolist(), kinds, own.step.tolist(), strict=True)
            ],
            hovertemplate=f"<b>%{{hovertext}}</b><br>%{{base:.3f}} to %{{customdata:.3f}} {unit}<extra></extra>",
        )  # fmt: skip


def _add_arrows(
    figure: go.Figure, trace: Trace, kind: MessageKind, own: Messages, scale: float, unit: str, *, labelled: bool
) -> None:
    """Draws an arrow from each message's start at the source to its end at the target, with a label near the worker.

    Arrows have the colour of the version that they carry, or that the gradient was computed from.
    """
    at = places(trace)
    source, target = own.transfers.source, own.transfers.target
    start, end = own.transfers.start_seconds * scale, own.transfers.end_seconds * scale
    rightward = np.sign(at[target] - at[source])
    begin_x = at[source] + rightward * np.where(source < trace.workers, 0.09, 0.0)  # beside the worker's bar
    end_x = at[target] - rightward * np.where(target < trace.workers, 0.09, STRIP)
    gaps = np.full(len(own), np.nan)
    many = len(at) > MANY_LIFELINES
    colours = np.array([INK if many else _colour(version) for version in own.version], dtype=object)
    line = LINES[kind] | ({"width": 0.6, "dash": "solid"} if many else {})
    key = line | {"color": INK}
    figure.add_scatter(x=[None], y=[None], mode="lines", name=kind, legendgroup=kind, line=key)
    for colour in dict.fromkeys(colours.tolist()):
        rows = colours == colour
        x, y = (np.column_stack(columns)[rows].ravel() for columns in ((begin_x, end_x, gaps), (start, end, gaps)))
        figure.add_scatter(
            x=x, y=y, mode="lines+markers", name=kind, legendgroup=kind, showlegend=False,
            line=line | {"color": colour},
            opacity=0.4 if many else 1.0,
            marker={
                "symbol": "arrow", "angleref": "previous", "size": np.tile([0, 5 if many else 11, 0], int(rows.sum())),
                "color": colour,
            },
            customdata=np.repeat(own.transfers.bytes[rows], 3),
            hovertext=np.repeat(np.array(own.text, dtype=object)[rows], 3),
            hovertemplate=f"<b>%{{hovertext}}</b><br>%{{customdata:.4s}}B, %{{y:.3f}} {unit}<extra></extra>",
        )  # fmt: skip
    if not labelled:
        return
    # Each kind of label has its own distance from the worker. Labels of far transfers would cover each other.
    worker, other = np.where(source < trace.workers, (source, target), (target, source))
    labels_x = at[worker] + np.sign(at[other] - at[worker]) * LABEL_ASIDE[kind]
    labels_y = start + (labels_x - at[source]) / (at[target] - at[source]) * (end - start)
    alike = len(np.unique(np.round(own.transfers.bytes, 3))) == 1 and kind != "transfer"  # the sentence tells the size
    for row in np.flatnonzero((np.abs(at[target] - at[source]) == 1.0) | (kind != "transfer")).tolist():
        size = [] if alike else [show(float(own.transfers.bytes[row]), "byte")]
        version = [] if own.version[row] is None else [f"{'of ' if kind == 'push' else ''}version {own.version[row]}"]
        for text in dict.fromkeys((", ".join(version + size), ", ".join(version or size))):
            if text and _is_free(figure, float(labels_x[row]), float(labels_y[row]), text):
                figure.add_annotation(
                    x=labels_x[row], y=labels_y[row], text=text,
                    showarrow=False, bgcolor=PAPER, borderpad=1, font={"size": SMALL, "color": INK},
                )  # fmt: skip
                break  # where none is free, hovering shows the text


def _colour(version: int | None) -> str:
    return INK if version is None else RUNS[version % len(RUNS)].colour


def _is_free(figure: go.Figure, x: float, y: float, text: str) -> bool:
    """Whether a label at (x, y) would cover no other label, however narrow the figure."""
    letter = LETTER_WIDTH * SMALL
    columns, times = (abs(axis.range[1] - axis.range[0]) for axis in (figure.layout.xaxis, figure.layout.yaxis))
    high = LABEL_PIXELS * times / HEIGHT_PIXELS
    return all(
        abs(y - other.y) >= high
        or abs(x - other.x) >= (letter * (len(text) + len(other.text)) / 2 + 4) * columns / (NARROW_PIXELS - 80)
        for other in figure.layout.annotations
    )


def _add_updates(figure: go.Figure, trace: Trace, start: float, end: float, scale: float, unit: str) -> None:
    """Draws a mark with the version on the server's lifeline; without a server, a line across all workers."""
    updates = trace.updates.where((trace.updates.time_seconds >= start) & (trace.updates.time_seconds <= end))
    if not len(updates):
        return
    times, versions, servers = updates.time_seconds * scale, updates.version.tolist(), updates.server.tolist()
    hover = {"hovertemplate": f"<b>version %{{text}}</b><br>%{{y:.3f}} {unit}<extra></extra>"}
    at = places(trace)
    if min(servers) < 0:
        lines = {"x": [-0.45, at.max() + 0.45, None] * len(times), "y": np.repeat(times, 3)}
        line = {"color": APPLY.colour, "width": 2, "dash": "dot"}
        texts = np.repeat(np.array(list(map(str, versions)), dtype=object), 3)
        figure.add_trace(go.Scatter(**lines, text=texts, mode="lines", name="update", line=line, **hover))
        return
    figure.add_scatter(
        x=at[servers], y=times, mode="markers+text", name="update",
        text=[str(version) for version in versions], textposition=_update_places(figure, times, servers),
        cliponaxis=False, textfont={"size": SMALL + 1},
        marker={
            "symbol": "diamond", "size": 10, "line": {"color": INK, "width": 1},
            "color": [_colour(version) for version in versions],
        },
        **hover,
    )  # fmt: skip


def _update_places(figure: go.Figure, times: Floats, servers: Sequence[int]) -> list[str]:
    """Where the version of each update stands: updates close together on one lifeline get different places."""
    last, first = figure.layout.yaxis.range
    near = LABEL_PIXELS * abs(last - first) / HEIGHT_PIXELS
    before: dict[int, float] = {}
    place, found = 0, []
    for time, server in zip(times.tolist(), servers, strict=True):
        place = (place + 1) % len(UPDATE_PLACES) if time - before.get(server, -math.inf) < near else 0
        before[server] = time
        found.append(UPDATE_PLACES[place])
    return found


def _add_drops(figure: go.Figure, trace: Trace, start: float, end: float, scale: float, unit: str) -> None:
    """Marks a dropped gradient at its arrival, and a cancelled gradient where its worker stops."""
    at = places(trace)
    for lost in drops(trace, start, end):
        at_server = (lost.server >= trace.workers) & (lost.fate == "dropped")
        figure.add_scatter(
            x=at[np.where(at_server, lost.server, lost.rank)], y=lost.seconds * scale,
            mode="markers", name=f"{lost.fate} gradient", hovertext=lost.text,
            marker={"symbol": "x", "size": 12, "color": DROPPED, "line": {"color": PAPER, "width": 1}},
            hovertemplate=f"<b>%{{hovertext}}</b><br>%{{y:.3f}} {unit}<extra></extra>",
        )  # fmt: skip
