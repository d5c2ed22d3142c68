"""Several policies against the clock: the median loss over seeds, the floor of each, and who overtakes the leader.

Both axes are logarithmic, since an early lead and a late one differ by powers of ten in time and in loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import DASHES, INK, LABEL_PAPER, MARKS, RUNS, SMALL, template
from distsim.figures.wording import counted, enumerated
from distsim.learning.curve import Curve

HEIGHT = 440
MOMENTS = 80
QUARTILES = (25.0, 75.0)
FLOOR_FROM = 0.8  # a floor is drawn over the last part of the axis, from this share of its length on


@dataclass(frozen=True)
class Runs:
    """The runs of one policy at the moments of the figure. low, high: between them lies the middle half of the runs."""

    name: str
    count: int
    median: Floats
    low: Floats
    high: Floats


def race(curves: Mapping[str, Sequence[Curve]], floors: Mapping[str, float] | None = None) -> Captioned:
    """Draws the median loss of each name's runs against time, with a band that holds the middle half of the runs.

    curves: by name, one curve per seed, of `distsim.learning.replay`. All lines end with the shortest run. floors: by
    name, the loss at which a formula says that these runs rest; a line without a floor has none. The
    leader is the line that first halves its loss. A mark shows where a line falls below the leader's for good; lines
    whose bands still meet at the end have none. A loss is the mean since the last of 80 moments, which are evenly
    spaced on the logarithmic axis.

    Raises InputError where there is nothing to draw.

    >>> from distsim.learning.experiments.race import predicted_floor, run
    >>> names = ("synchronous", "asynchronous")
    >>> runs = {name: [run(name, seed, seconds=150.0) for seed in (1, 2, 3)] for name in names}
    >>> race(runs, {name: predicted_floor(name) for name in names}).summary
    'Asynchronous leads first. No other run overtakes it within 135 s.'
    """
    if not curves or not all(curves.values()):
        raise InputError.of("race(curves)", curves, "there is nothing to draw", "pass at least one curve of each name")
    floors = floors or {}
    moments = _moments(curves)
    lines = [_runs(name, found, moments) for name, found in curves.items()]
    leader = _first_leader(lines)
    overtaken = {line.name: _overtakes(line, leader, moments) for line in lines if line is not leader}
    figure = go.Figure()
    for number, line in enumerate(lines):
        _add_runs(figure, line, moments, number)
        if line.name in floors:
            _add_floor(figure, line.name, floors[line.name], moments, number)
    if floors:
        _name_floors(figure, min(floors.values()), moments)
    _add_marks(figure, lines, leader, overtaken, moments)
    figure.update_layout(template=template(), height=HEIGHT, margin={"t": 70, "b": 55, "l": 10, "r": 14})
    ends = np.log10(moments[[0, -1]]) + np.array([-0.02, 0.04]) * np.log10(moments[-1] / moments[0])
    figure.update_xaxes(type="log", title_text="time (s)", dtick=1, range=ends.tolist())
    figure.update_yaxes(type="log", title_text="loss over all samples", dtick=1)
    table: list[Row] = [
        {
            "run": line.name, "seeds": line.count, "loss at the end": float(line.median[-1]),
            "floor by the formula": floors.get(line.name), f"overtakes {leader.name} at (s)": overtaken.get(line.name),
        }
        for line in lines
    ]  # fmt: skip
    return Captioned(figure, _sentence(leader, overtaken, float(moments[-1])), table)


def _moments(curves: Mapping[str, Sequence[Curve]]) -> Floats:
    """From the first loss that a run has after its start to the end of the shortest run."""
    every = [curve.seconds for found in curves.values() for curve in found]
    first = min(float(seconds[seconds > 0.0].min(initial=np.inf)) for seconds in every)
    last = min(float(seconds[-1]) for seconds in every)
    if not first < last:
        raise InputError.of("race(curves)", [last], "must all have updates at several times", "take longer runs")
    return np.geomspace(first, last, MOMENTS)


def _runs(name: str, curves: Sequence[Curve], moments: Floats) -> Runs:
    losses = np.array([_smoothed(curve, moments) for curve in curves])
    low, high = np.percentile(losses, QUARTILES, axis=0)
    return Runs(name, len(curves), np.median(losses, axis=0), low, high)


def _smoothed(curve: Curve, moments: Floats) -> Floats:
    """At each moment, the mean of the losses since the moment before; the last loss where there is none."""
    ends = np.searchsorted(curve.seconds, moments, side="right")
    starts = np.concatenate([[ends[0] - 1], ends[:-1]])
    sums = np.concatenate([[0.0], np.cumsum(curve.loss)])
    counts = ends - starts
    return np.where(counts > 0, (sums[ends] - sums[starts]) / np.maximum(counts, 1), curve.loss[ends - 1])


def _first_leader(lines: Sequence[Runs]) -> Runs:
    """The line that first halves its loss; the lowest line at the end if none does."""
    halved = [np.flatnonzero(line.median <= line.median[0] / 2) for line in lines]
    if not any(len(found) for found in halved):
        return min(lines, key=lambda line: float(line.median[-1]))
    reached = [(int(found[0]), float(line.median[found[0]]), place)
               for place, (line, found) in enumerate(zip(lines, halved, strict=True)) if len(found)]  # fmt: skip
    return lines[min(reached)[2]]


def _overtakes(line: Runs, leader: Runs, moments: Floats) -> float | None:
    """The moment from which on the line is below the leader's. None if its band is not below at the end."""
    if line.high[-1] >= leader.low[-1]:
        return None
    behind = np.flatnonzero(line.median >= leader.median)
    following = int(behind[-1]) + 1 if len(behind) else 0
    return float(moments[following]) if following < len(moments) else None


def _add_runs(figure: go.Figure, line: Runs, moments: Floats, number: int) -> None:
    colour, dash = RUNS[number % len(RUNS)].colour, DASHES[number % len(DASHES)]
    if line.count > 1:
        figure.add_scatter(
            x=np.concatenate([moments, moments[::-1]]), y=np.concatenate([line.high, line.low[::-1]]),
            fill="toself", mode="lines", line={"width": 0}, fillcolor=colour, opacity=0.2, hoverinfo="skip",
            name=f"middle half of {line.name}", showlegend=False, legendgroup=line.name,
        )  # fmt: skip
    of = "" if line.count == 1 else f", median of {counted(line.count, 'run')}"
    figure.add_scatter(
        x=moments, y=line.median, mode="lines", name=line.name, legendgroup=line.name,
        line={"color": colour, "dash": dash, "width": 2.5},
        hovertemplate=f"{line.name}{of}<br>time (s): %{{x:.4g}}<br>loss %{{y:.4g}}<extra></extra>",
    )  # fmt: skip


def _add_floor(figure: go.Figure, name: str, floor: float, moments: Floats, number: int) -> None:
    first = moments[0] * (moments[-1] / moments[0]) ** FLOOR_FROM
    figure.add_scatter(
        x=[first, moments[-1]], y=[floor, floor], mode="lines+markers", name=f"floor of {name}", showlegend=False,
        legendgroup=name, line={"color": RUNS[number % len(RUNS)].colour, "width": 1.5},
        marker={"symbol": MARKS[number % len(MARKS)], "size": 7, "line": {"color": INK, "width": 1}},
        hovertemplate=f"floor of {name}: %{{y:.4g}}<extra></extra>",
    )  # fmt: skip


def _name_floors(figure: go.Figure, lowest: float, moments: Floats) -> None:
    """Beside the lowest floor, where no line comes before it has come to its end."""
    first = moments[0] * (moments[-1] / moments[0]) ** FLOOR_FROM
    figure.add_annotation(
        x=np.log10(first), y=np.log10(lowest), text="floors by the formula", showarrow=False, xanchor="right",
        xshift=-8, font={"size": SMALL, "color": INK}, bgcolor=LABEL_PAPER,
    )  # fmt: skip


def _add_marks(
    figure: go.Figure, lines: Sequence[Runs], leader: Runs, overtaken: Mapping[str, float | None], moments: Floats
) -> None:
    """A point with its time where a line falls below the leader's."""
    for number, line in enumerate(lines):
        at = overtaken.get(line.name)
        if at is None:
            continue
        loss = float(np.interp(at, moments, line.median))
        figure.add_scatter(
            x=[at], y=[loss], mode="markers", name=f"{line.name} overtakes {leader.name}", showlegend=False,
            legendgroup=line.name, hovertemplate=f"{line.name} overtakes {leader.name} at {at:.3g} s<extra></extra>",
            marker={
                "symbol": MARKS[number % len(MARKS)], "size": 11, "color": RUNS[number % len(RUNS)].colour,
                "line": {"color": INK, "width": 1.5},
            },
        )  # fmt: skip
        figure.add_annotation(
            x=np.log10(at), y=np.log10(loss), text=f"{at:.3g} s", ax=18, ay=-30,
            font={"size": SMALL, "color": INK}, bgcolor=LABEL_PAPER, arrowcolor=INK, arrowwidth=1, arrowhead=0,
        )  # fmt: skip


def _sentence(leader: Runs, overtaken: Mapping[str, float | None], last: float) -> str:
    text = f"{leader.name[:1].upper()}{leader.name[1:]} leads first."
    passing = sorted((at, name) for name, at in overtaken.items() if at is not None)
    if passing:
        return f"{text} Overtaken by {enumerated([f'{name} at {at:.3g} s' for at, name in passing])}."
    return f"{text} No other run overtakes it within {last:.3g} s." if overtaken else text
