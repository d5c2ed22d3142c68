"""The lanes of a timeline as plain dicts: a panel for each run, all on one time axis.

The figure is built from all dicts at once. Plotly validates a figure at each change, so building it piece by piece
takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distsim.arrays import Flags, Floats
from distsim.errors import InputError
from distsim.figures.theme import COMMUNICATION, DROPPED, INK, PAPER, PAUSES, SMALL, Look, marker, template
from distsim.figures.timeline_bars import Bars, bars, drops, row_of, rows
from distsim.figures.wording import counted, time_unit
from distsim.trace import Spans, Trace
from distsim.units import show

UPDATES_SHOWN = 10
MANY_MARKS = 60  # if the window has more updates, they are short ticks at the top of the panel
DROPPED_SYMBOL = {"dropped": "x", "cancelled": "diamond"}
DECIMALS = 4  # of a time in the figure; the fourth decimal of a ms is a tenth of a microsecond
TOP_PIXELS, AXIS_PIXELS, GAP_PIXELS = 76, 52, 40

Drawing = dict[str, Any]


@dataclass(frozen=True)
class Window:
    """The interval of time that is drawn, and the unit of its axis."""

    start_seconds: float
    end_seconds: float

    @classmethod
    def of(cls, figure: str, traces: Sequence[Trace], start_seconds: float, end_seconds: float | None) -> Window:
        """From `start_seconds` to `end_seconds`; None ends it after about `UPDATES_SHOWN` updates.

        figure: the name of the figure, for the error. Raises InputError where the window is empty.
        """
        end = max(_end_of_steps(trace, start_seconds) for trace in traces) if end_seconds is None else end_seconds
        if not end > start_seconds:
            raise InputError.of(
                f"{figure}(start_seconds, end_seconds)", (start_seconds, end), "the window must end after it starts",
                f"take times between 0 s and {show(max(trace.total_seconds for trace in traces), 'second')}",
            )  # fmt: skip
        return cls(start_seconds, end)

    @property
    def scale(self) -> float:
        """The number of axis units in one second."""
        return time_unit(self.end_seconds - self.start_seconds)[0]

    @property
    def unit(self) -> str:
        """The unit of the time axis."""
        return time_unit(self.end_seconds - self.start_seconds)[1]

    def touches(self, start_seconds: Floats, end_seconds: Floats) -> Flags:
        """Whether each interval overlaps the window."""
        return (end_seconds >= self.start_seconds) & (start_seconds <= self.end_seconds)

    def told(self, traces: Sequence[Trace]) -> str:
        """A space and a sentence that names the window; empty if the window contains all runs."""
        if self.start_seconds <= 0.0 and all(trace.total_seconds <= self.end_seconds for trace in traces):
            return ""
        return f" Drawn: {show(self.start_seconds, 'second')} to {show(self.end_seconds, 'second')}."


def _end_of_steps(trace: Trace, start_seconds: float) -> float:
    """The time when each worker has done about `UPDATES_SHOWN` steps since the start of the window.

    Where updates wait for all workers, a step is one update; otherwise a step is one update per worker.
    """
    times = np.sort(trace.updates.time_seconds)
    times = times[times > start_seconds]
    if not len(times):
        return float(trace.spans.end_seconds.max(initial=0.0))
    per_step = 1 if trace.scenario.policy.has_global_step else trace.workers
    last = times[min(UPDATES_SHOWN * per_step, len(times)) - 1]
    return float(last + 0.01 * (last - start_seconds))


def _row_pixels(traces: Sequence[Trace]) -> int:
    most = max(rows(trace) for trace in traces)
    return int(np.clip((640 if len(traces) == 1 else 460) / most, 7, 30))


def layout(traces: Sequence[Trace], names: list[str], window: Window) -> dict[str, Any]:
    """The panels: axes, lanes and headings."""
    row_pixels = _row_pixels(traces)
    pixels = [row_pixels * rows(trace) for trace in traces]
    inner = sum(pixels) + GAP_PIXELS * (len(traces) - 1)
    found: dict[str, Any] = {
        "template": template(), "barmode": "overlay", "hovermode": "closest",
        "height": TOP_PIXELS + AXIS_PIXELS + inner, "margin": {"t": TOP_PIXELS, "b": AXIS_PIXELS, "l": 10, "r": 12},
        "legend": {"y": 1.0 + 26 / inner, "itemsizing": "constant"}, "annotations": [],
    }  # fmt: skip
    reach = [window.scale * window.start_seconds, window.scale * window.end_seconds]
    top = inner
    for panel, (trace, name) in enumerate(zip(traces, names, strict=True), start=1):
        x, y = _axes(panel)
        lowest = panel == len(traces)
        found[_axis_key(x)] = {
            "anchor": y, "range": reach, "minallowed": reach[0], "maxallowed": reach[1], "showgrid": True,
            **({"title": {"text": f"time ({window.unit})"}} if lowest else
               {"matches": _axes(len(traces))[0], "showticklabels": False}),
        }  # fmt: skip
        found[_axis_key(y)] = {
            "anchor": x, "domain": [(top - pixels[panel - 1]) / inner, top / inner], **_lane_names(trace, row_pixels),
        }  # fmt: skip
        found["annotations"].append(
            {
                "text": f"<b>{name}</b>", "x": 0, "xref": "paper", "xanchor": "left", "showarrow": False,
                "y": 1.0, "yref": f"{y} domain", "yanchor": "bottom", "yshift": 3,
            }
        )  # fmt: skip
        top -= pixels[panel - 1] + GAP_PIXELS
    return found


def _axes(panel: int) -> tuple[str, str]:
    """The names of a panel's axes in drawings; panels count from 1."""
    return ("x", "y") if panel == 1 else (f"x{panel}", f"y{panel}")


def _axis_key(axis: str) -> str:
    return f"{axis[0]}axis{axis[1:]}"


def _lane_names(trace: Trace, row_pixels: int) -> dict[str, Any]:
    """The axis of a panel's lanes. If lanes are narrow, only some workers and all servers have names."""
    every = 1 if row_pixels >= 14 else 2 if row_pixels >= 11 else 4
    servers = list(range(trace.workers, trace.workers + trace.servers))
    ranks = [*range(0, trace.workers if every == 1 else trace.workers - every // 2, every), *servers]
    return {
        "range": [rows(trace) - 0.4, -0.6], "tickvals": [row_of(trace, rank) for rank in ranks],
        "ticktext": [trace.lane(rank) for rank in ranks], "tickfont": {"size": SMALL + 1 if every == 1 else SMALL},
        "showgrid": False, "fixedrange": True,
    }  # fmt: skip


def lanes(trace: Trace, window: Window) -> list[Drawing]:
    """The drawings of one run: bars by category, updates, and gradients that were not applied."""
    return [*of_spans(trace, window), *_updates(trace, window), *_drops(trace, window)]


def of_spans(trace: Trace, window: Window, spans: Spans | None = None) -> list[Drawing]:
    """The bars of a run by category. spans: the spans to draw; None draws all."""
    found = bars(trace, window.start_seconds, window.end_seconds, spans)
    return [_bars(look, drawn, window) for look, drawn in found.items()]


def placed(panel: int, drawings: Sequence[Drawing]) -> list[Drawing]:
    """The drawings in a panel; a click on a name in the legend hides it in all panels."""
    x, y = _axes(panel)
    return [drawing | {"legendgroup": drawing["name"], "xaxis": x, "yaxis": y} for drawing in drawings]


def with_legend(drawings: Sequence[Drawing]) -> list[Drawing]:
    """The drawings, with each name once in the legend."""
    names = [drawing["name"] for drawing in drawings]
    return [drawing | {"showlegend": drawing["name"] not in names[:place]} for place, drawing in enumerate(drawings)]


def _bars(look: Look, drawn: Bars, window: Window) -> Drawing:
    start = np.round(drawn.start_seconds * window.scale, DECIMALS)
    end = np.round(drawn.end_seconds * window.scale, DECIMALS)
    carried = "<br>%{customdata[1]:.4s}B" if look is COMMUNICATION else ""
    step = "" if look in PAUSES else ", step %{customdata[0]}"
    return {
        "type": "bar", "name": look.name, "orientation": "h", "marker": marker(look),
        "base": start, "x": np.round(end - start, DECIMALS),
        "y": drawn.middle.astype(np.float32), "width": drawn.height.astype(np.float32),
        "hovertext": np.array(drawn.text),
        "customdata": np.column_stack([drawn.step, drawn.bytes]).astype(np.float32),
        "hovertemplate": f"<b>%{{hovertext}}</b>{step}<br>"
        f"%{{base:.3f}} to %{{x:.3f}} {window.unit}{carried}<extra></extra>",
    }  # fmt: skip


def _updates(trace: Trace, window: Window) -> list[Drawing]:
    updates = trace.updates.where(window.touches(trace.updates.time_seconds, trace.updates.time_seconds))
    if not len(updates):
        return []
    times: Floats = updates.time_seconds * window.scale
    bottom = rows(trace) - 0.45 if len(updates) <= MANY_MARKS else 0.0
    applied = trace.contributions.where(trace.contributions.applied)
    gradients = np.bincount(applied.version, minlength=int(updates.version.max()) + 1)[updates.version]
    text = [
        f"update {version} of {counted(count, 'gradient')}"
        for version, count in zip(updates.version.tolist(), gradients.tolist(), strict=True)
    ]
    gaps = np.full(len(times), np.nan)
    return [
        {
            "type": "scatter", "name": "update", "mode": "lines",
            "x": np.column_stack([times, times, gaps]).ravel(), "y": np.tile([-0.55, bottom, np.nan], len(times)),
            "hovertext": np.repeat(np.array(text, dtype=object), 3),
            "line": {"color": INK, "width": 1.5, "dash": "dot"},
            "hovertemplate": f"<b>%{{hovertext}}</b><br>%{{x:.3f}} {window.unit}<extra></extra>",
        }
    ]  # fmt: skip


def _drops(trace: Trace, window: Window) -> list[Drawing]:
    size = 10 if rows(trace) <= 32 else 7
    return [
        {
            "type": "scatter", "name": f"{lost.fate} gradient", "mode": "markers", "hovertext": lost.text,
            "x": lost.seconds * window.scale, "y": row_of(trace, lost.rank), "cliponaxis": False,
            "marker": {
                "symbol": DROPPED_SYMBOL[lost.fate], "size": size, "color": DROPPED,
                "line": {"color": PAPER, "width": 1},
            },
            "hovertemplate": f"<b>%{{hovertext}}</b><br>%{{x:.3f}} {window.unit}<extra></extra>",
        }
        for lost in drops(trace, window.start_seconds, window.end_seconds)
    ]  # fmt: skip
