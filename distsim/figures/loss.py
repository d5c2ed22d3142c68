"""Loss against time, updates and samples, for several policies, learning rates or batches.

The order of the runs may differ between these axes. The dotted line is the lowest loss that all runs reach; the table
tells when each run first reaches this loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.loss_lines import Line, common_target, line_of, spread
from distsim.figures.theme import DASHES, DROPPED, INK, OTHER_RUNS, RUNS, Look, template
from distsim.figures.wording import enumerated
from distsim.learning.curve import Curve

Against = Literal["seconds", "updates", "samples"]
COLUMNS: dict[Against, str] = {"seconds": "seconds", "updates": "update", "samples": "samples"}
TITLES: dict[Against, str] = {"seconds": "time (s)", "updates": "updates", "samples": "samples"}
MOST_NAMED = 10  # if there are more, only the runs with the lowest and the highest last loss have names
NAMED = 3  # at most so many diverging runs are in the sentence
MOST_DECADES = 6  # numbered powers of ten on the axis
RISES = 0.5  # of the fall to its lowest loss: a line that rises again by more is in the sentence
LOG_FROM = 10.0  # the largest loss over the least; beyond this ratio the axis is logarithmic
LOG_X_FROM = 5.0  # the longest run over the shortest; beyond this ratio the axis is logarithmic
GAP = 0.03  # between two panels, as a share of the figure
MARGIN = 0.06  # above and below the lines, as a share of the axis


def loss(
    curves: Mapping[str, Curve | Sequence[Curve]],
    against: Sequence[Against] = ("seconds", "updates", "samples"),
    target: float | None = None,
) -> Captioned:
    """Draws a panel for each axis in `against`, with a line for each name in `curves`.

    curves: by name, the curve that `distsim.learning.replay` returns. Several curves of one name are runs with
    different seeds; their line is the mean with its 95 % interval. A line that diverges ends in a cross. target: the
    loss at which runs are compared; without it, the lowest that all lines without divergence reach.

    Raises InputError where there is nothing to draw, and where such a line does not reach the target.

    >>> from distsim import example, simulate
    >>> from distsim.learning.optimizers import Sgd
    >>> from distsim.learning.quadratic import Quadratic
    >>> from distsim.learning.replay import replay
    >>> run = replay(simulate(example("synchronous_ring")), Quadratic(), Sgd(rate=0.1), batch=8)
    >>> loss({"ring": run}, against=["updates"]).summary
    'Ring: the loss falls from 3.99 to 0.175 in 50 updates.'
    """
    runs = {name: [found] if isinstance(found, Curve) else list(found) for name, found in curves.items()}
    if not runs or not all(runs.values()):
        raise InputError.of("loss(curves)", curves, "there is nothing to draw", "pass at least one curve of each name")
    if not against or not set(against) <= set(COLUMNS):
        raise InputError.of("loss(against)", against, f"must be of {', '.join(COLUMNS)}", 'take ["seconds"]')
    panels = {axis: [line_of(name, found, COLUMNS[axis]) for name, found in runs.items()] for axis in against}
    if target is not None:
        _check_reached(panels, target)
    elif len(runs) > 1:
        target = common_target(panels[against[0]])
    looks = _looks(panels[against[0]])
    traces: list[go.Scatter] = []
    axes: dict[str, Any] = {}
    scale_y = _scale_y(panels[against[0]])
    for panel, (axis, lines) in enumerate(panels.items(), start=1):
        traces += _traces_of_lines(lines, looks, axis, panel)
        if target is not None:
            traces.append(_target(lines, target, panel))
        axes |= _axes(lines, axis, panel, len(panels), scale_y)
    many = len(runs) > len(RUNS)
    legend = {"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1.0, "yanchor": "top"} if many else {}
    margin = {"t": 50, "b": 55, "l": 10, "r": 14}
    # Built at once: each later change of a layout takes longer than the whole figure.
    figure = go.Figure(traces, axes | {"template": template(), "height": 400, "legend": legend, "margin": margin})
    return Captioned(figure, _sentence(panels, target), _table(runs, panels, target))


def _check_reached(panels: Mapping[Against, Sequence[Line]], target: float) -> None:
    lines = [line for lines in panels.values() for line in lines if line.whole]
    short = [line for line in lines if line.reaches(target) is None]
    if short or not lines:
        least = max((float(line.loss.min()) for line in lines), default=float("inf"))
        raise InputError.of(
            "loss(target)", target, f"is not reached by {short[0].name if short else 'any run'}",
            f"take {least:.3g} or more, or leave target out" if lines else "leave target out",
        )  # fmt: skip


def _looks(lines: Sequence[Line]) -> list[tuple[Look, str, bool]]:
    """The look and the dash of each line, and whether the legend names the line."""
    if len(lines) <= MOST_NAMED:
        count = len(RUNS)
        return [
            (Look(line.name, RUNS[number % count].colour, ""), DASHES[(number + number // count) % count], True)
            for number, line in enumerate(lines)
        ]
    ends = [float(line.loss[-1]) if line.whole else np.inf for line in lines]
    chosen = {int(np.argmin(ends)): 0, int(np.argmax(ends)): 1}
    return [
        (Look(line.name, RUNS[chosen[number]].colour, ""), DASHES[chosen[number]], True)
        if number in chosen
        else (OTHER_RUNS, "solid", False)
        for number, line in enumerate(lines)
    ]


def _traces_of_lines(
    lines: Sequence[Line], looks: Sequence[tuple[Look, str, bool]], axis: Against, panel: int
) -> list[go.Scatter]:
    others = [line for line, (_, _, named) in zip(lines, looks, strict=True) if not named]
    traces = [_others(others, axis, panel)] if others else []
    for line, (look, dash, named) in zip(lines, looks, strict=True):
        if named:
            traces += _traces_of_line(line, look, dash, axis, panel)
    broken = [line for line in lines if not line.whole and len(line.x)]
    if broken:
        traces.append(go.Scatter(
            x=[line.x[-1] for line in broken], y=[line.loss[-1] for line in broken], mode="markers",
            name="diverges", text=[line.name for line in broken], showlegend=panel == 1,
            legendgroup="broken", cliponaxis=False,
            marker={"symbol": "x", "size": 9, "color": DROPPED, "line": {"color": INK, "width": 1}},
            hovertemplate="%{text} diverges<extra></extra>",
            **_place(panel),
        ))  # fmt: skip
    return traces


def _place(panel: int) -> dict[str, str]:
    """The axes of a panel, from 1 on."""
    number = "" if panel == 1 else str(panel)
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def _traces_of_line(line: Line, look: Look, dash: str, axis: Against, panel: int) -> list[go.Scatter]:
    traces = []
    if line.runs > 1:
        traces.append(go.Scatter(
            x=np.concatenate([line.x, line.x[::-1]]), y=np.concatenate([line.high, _drawable(line)[::-1]]),
            fill="toself", mode="lines", line={"width": 0}, fillcolor=look.colour, opacity=0.25,
            name=f"95 % interval of {line.name}", showlegend=False, legendgroup=line.name, hoverinfo="skip",
            **_place(panel),
        ))  # fmt: skip
    of = "" if line.runs == 1 else f", mean of {line.runs} runs"
    traces.append(go.Scatter(
        x=line.x, y=line.loss, mode="lines", name=line.name, legendgroup=line.name, showlegend=panel == 1,
        line={"color": look.colour, "dash": dash, "width": 2.5},
        hovertemplate=f"{line.name}{of}<br>{TITLES[axis]}: %{{x:.4g}}<br>loss %{{y:.4g}}<extra></extra>",
        **_place(panel),
    ))  # fmt: skip
    return traces


def _drawable(line: Line) -> np.ndarray:
    """The lower bounds. A bound at or below 0 becomes a tenth of the loss, which a logarithmic axis can show."""
    return np.where(line.low > 0.0, line.low, np.minimum(0.1 * line.loss, line.high))


def _others(lines: Sequence[Line], axis: Against, panel: int) -> go.Scatter:
    """All lines in one trace with gaps, since many traces are slow to draw."""
    x = np.concatenate([[*line.x, np.nan] for line in lines])
    y = np.concatenate([[*line.loss, np.nan] for line in lines])
    names = [name for line in lines for name in [line.name] * (len(line.x) + 1)]
    return go.Scatter(
        x=x, y=y, text=names, mode="lines", name=f"{len(lines)} others", legendgroup="others",
        showlegend=panel == 1, line={"color": OTHER_RUNS.colour, "width": 1}, connectgaps=False,
        hovertemplate=f"%{{text}}<br>{TITLES[axis]}: %{{x:.4g}}<br>loss %{{y:.4g}}<extra></extra>",
        **_place(panel),
    )  # fmt: skip


def _axes(lines: Sequence[Line], axis: Against, panel: int, panels: int, y: dict[str, Any]) -> dict[str, Any]:
    """Both axes of a panel. y: the scale of the losses, the same for all panels."""
    number = "" if panel == 1 else str(panel)
    width = (1.0 - GAP * (panels - 1)) / panels
    left = (panel - 1) * (width + GAP)
    x = {"title": {"text": TITLES[axis]}, "anchor": f"y{number}", "domain": [left, min(left + width, 1.0)]}
    y = y | {"anchor": f"x{number}", "domain": [0.0, 1.0]}
    y |= {"title": {"text": "loss over all samples"}} if panel == 1 else {"matches": "y", "showticklabels": False}
    return {f"xaxis{number}": x | _scale_x(lines), f"yaxis{number}": y}


def _scale_x(lines: Sequence[Line]) -> dict[str, Any]:
    """Logarithmic if one run is much longer than another; the axis then begins at the earliest value above 0."""
    looked = [line.x[line.x > 0.0] for line in lines]
    ends = np.array([x[-1] for x, line in zip(looked, lines, strict=True) if len(x) and line.whole])
    if spread(ends) > LOG_X_FROM:
        first, last = np.log10(min(x[0] for x in looked if len(x))), np.log10(ends.max())
        spare = 0.02 * (last - first)
        return {"type": "log", "range": [first - spare, last + spare], "dtick": 1}
    return {"rangemode": "tozero", "nticks": 6}


def _scale_y(lines: Sequence[Line]) -> dict[str, Any]:
    values = np.concatenate([line.loss for line in lines])
    if LOG_FROM < spread(values) < np.inf:
        low, high = np.log10(values.min()), np.log10(values.max())
        spare = MARGIN * (high - low)
        tick = max(1, round((high - low) / MOST_DECADES)) if high - low > 1.5 else None
        return {"type": "log", "range": [low - spare, high + spare], "dtick": tick}
    return {}


def _target(lines: Sequence[Line], target: float, panel: int) -> go.Scatter:
    first = min(float(line.x[line.x > 0.0].min(initial=np.inf)) for line in lines)
    last = max(float(line.x.max(initial=0.0)) for line in lines)
    return go.Scatter(
        x=[min(first, last), last], y=[target, target], mode="lines", name=f"all reach {target:.3g}",
        line={"color": INK, "width": 1.5, "dash": "1px,3px"}, showlegend=panel == 1, legendgroup="target",
        hoverinfo="skip",
        **_place(panel),
    )  # fmt: skip


def _table(
    runs: Mapping[str, Sequence[Curve]], panels: Mapping[Against, Sequence[Line]], target: float | None
) -> list[Row]:
    lines = next(iter(panels.values()))
    accuracies = [float(np.mean([curve.accuracy[-1] for curve in found])) for found in runs.values()]
    table: list[Row] = []
    for number, (line, found, accuracy) in enumerate(zip(lines, runs.values(), accuracies, strict=True)):
        row: dict[str, str | float | int | None] = {
            "run": line.name,
            "samples per update": float(np.mean([curve.effective_batch for curve in found])),
            "loss at the end": float(line.loss[-1]) if line.whole else None,
        }
        if any(other.runs > 1 for other in lines):
            sure = line.whole and line.runs > 1
            row |= {
                "95 % from": float(line.low[-1]) if sure else None, "to": float(line.high[-1]) if sure else None,
                "seeds": line.runs,
            }  # fmt: skip
        if not np.isnan(accuracies).all():
            row["test accuracy (%)"] = None if np.isnan(accuracy) else 100.0 * accuracy
        for axis, own in panels.items():
            if target is None:
                row[TITLES[axis]] = max(float(getattr(curve, COLUMNS[axis])[-1]) for curve in found)
            else:
                row[f"{TITLES[axis]} to {target:.3g}"] = own[number].reaches(target) if own[number].whole else None
        table.append(row)
    return table


def _sentence(panels: Mapping[Against, Sequence[Line]], target: float | None) -> str:
    axis, lines = next(iter(panels.items()))
    whole = [line for line in lines if line.whole]
    diverged = [line.name for line in lines if not line.whole]
    text = []
    if target is not None and len(lines) > 1:
        text.append(f"All runs{' that do not diverge' if diverged else ''} reach a loss of {target:.3g}; ")
        text[-1] += f"{_winners(panels, target)}."
    elif len(whole) == 1:
        (line,) = whole
        course = f"falls from {line.loss[0]:.3g}" if line.loss[-1] < line.loss[0] else f"goes from {line.loss[0]:.3g}"
        text.append(f"{line.name[:1].upper()}{line.name[1:]}: the loss {course} to {line.loss[-1]:.3g} ")
        text[-1] += f"{'with' if axis == 'samples' else 'in'} {_amount(line.x[-1], axis)}."
    elif whole:
        best, worst = (choose(whole, key=lambda line: float(line.loss[-1])) for choose in (min, max))
        text.append(f"The loss ends at {best.loss[-1]:.3g} ({best.name}) to {worst.loss[-1]:.3g} ({worst.name}).")
    for line in whole if len(whole) > 1 else ():
        first, lowest, last = float(line.loss[0]), float(line.loss.min()), line.last
        if last - lowest > RISES * (first - lowest) > 0.0:
            text.append(f"The loss of {line.name} falls to {lowest:.3g} and rises again to {last:.3g}.")
    if diverged:
        names = ", ".join(diverged[:NAMED]) + (f" and {len(diverged) - NAMED} more" if len(diverged) > NAMED else "")
        text.append(f"{len(diverged)} of {len(lines)} diverge{'s' * (len(diverged) == 1)}: {names}.")
    return " ".join(text)


def _winners(panels: Mapping[Against, Sequence[Line]], target: float) -> str:
    """The runs that reach the target first, for each axis."""
    found: dict[str, list[str]] = {}
    for axis, lines in panels.items():
        reached = {line.name: at for line in lines if line.whole and (at := line.reaches(target)) is not None}
        first = min(reached.values())
        names = enumerated([name for name, at in reached.items() if at == first])
        found.setdefault(names, []).append(_amount(first, axis))
    told = [f"{names} after {enumerated(amounts)}" for names, amounts in found.items()]
    return f"first {', and '.join(told)}"


def _amount(value: float, axis: Against) -> str:
    """A value on an axis in words, for the sentence."""
    if axis == "seconds":
        return f"{value:.3g} s"
    return f"{value:,.0f} {axis if value != 1 else axis.removesuffix('s')}"
