"""The time of a step against the number of workers, for several kinds of communication."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import DASHES, INK, MARKS, RUNS, template
from distsim.figures.wording import counted
from distsim.theory.arguments import is_count
from distsim.units import show

HEIGHT = 420
COMPUTE = "compute alone"
TICK_SHARE = 0.05  # the least distance between two numbers under the axis, as a share of the axis


def step_times(curves: Mapping[str, Mapping[int, float]], compute_seconds: float | None = None) -> Captioned:
    """Draws the `curves`: by name and number of workers, step times in seconds. A dotted line is the compute time.

    Both axes are linear: the time through one parameter server grows by the same amount with each worker, and is drawn
    as a straight line.

    Raises InputError where a number of workers is no count, or a time is below 0.

    >>> step_times({"ring": {2: 0.06, 4: 0.07}, "server": {2: 0.11, 4: 0.16}}, compute_seconds=0.05).summary
    'On 4 workers a step takes 70 ms by ring and 160 ms by server; computing alone takes 50 ms.'
    """
    for name, curve in curves.items():
        if any(not is_count(workers) or not seconds >= 0.0 for workers, seconds in curve.items()):
            rule = "must have times of at least 0, in seconds, by counts of at least 1"
            raise InputError.of(f"step_times({name!r})", dict(curve), rule, "pass such as {2: 0.05, 4: 0.06}")
    figure = go.Figure()
    for number, (name, curve) in enumerate(curves.items()):
        workers = sorted(curve)
        colour = RUNS[number % len(RUNS)].colour
        figure.add_scatter(
            x=workers, y=[1e3 * curve[count] for count in workers], mode="lines+markers", name=name,
            line={"color": colour, "dash": DASHES[number % len(DASHES)], "width": 2},
            marker={"symbol": MARKS[number % len(MARKS)], "size": 9, "line": {"color": INK, "width": 1}},
            hovertemplate=f"{name}, %{{x}} workers: %{{y:.4g}} ms<extra></extra>",
        )  # fmt: skip
    counts = sorted({count for curve in curves.values() for count in curve})
    figure.update_layout(template=template(), height=HEIGHT, margin={"t": 50, "b": 50, "l": 10, "r": 14})
    figure.update_xaxes(title_text="workers", tickvals=_ticks(counts))
    figure.update_yaxes(rangemode="tozero", title_text="step time (ms)")
    if compute_seconds is not None:
        figure.add_hline(
            y=1e3 * compute_seconds, line={"color": INK, "width": 1, "dash": "dot"},
            annotation={"text": COMPUTE, "xanchor": "right", "yanchor": "top"},
        )  # fmt: skip
    return Captioned(figure, _sentence(curves, compute_seconds), _table(curves, counts))


def _ticks(counts: list[int]) -> list[int]:
    """The counts that are written under the axis, without overlap. The last count is always written.

    >>> _ticks([2, 4, 8, 16, 32, 33])
    [2, 4, 8, 16, 33]
    >>> _ticks([2, 4, 8, 16, 32, 64, 128])
    [8, 16, 32, 64, 128]
    """
    kept: list[int] = []
    for count in reversed(counts):
        if not kept or kept[-1] - count >= TICK_SHARE * (counts[-1] - counts[0]):
            kept.append(count)
    return kept[::-1]


def _sentence(curves: Mapping[str, Mapping[int, float]], compute_seconds: float | None) -> str:
    most = max((count for curve in curves.values() for count in curve), default=None)
    if most is None:
        return "No step time was given, so nothing is drawn."
    told = " and ".join(f"{show(curve[most], 'second')} by {name}" for name, curve in curves.items() if most in curve)
    alone = "" if compute_seconds is None else f"; computing alone takes {show(compute_seconds, 'second')}"
    return f"On {counted(most, 'worker')} a step takes {told}{alone}."


def _table(curves: Mapping[str, Mapping[int, float]], counts: list[int]) -> list[Row]:
    rows: list[Row] = []
    for count in counts:
        row: dict[str, str | float | int | None] = {"workers": count}
        for name, curve in curves.items():
            row[f"{name} (ms)"] = 1e3 * curve[count] if count in curve else None
        rows.append(row)
    return rows
