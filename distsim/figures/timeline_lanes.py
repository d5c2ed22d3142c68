"""The lanes of a timeline as plain dicts: a panel for each run, all on one time axis.

The figure is built from all dicts at once. Plotly validates a figure at each change, so building it piece by piece
takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

FEWEST_STEPS, MOST_STEPS = 2, 10  # of every worker, in a window that nobody chose
MOST_BARS = 360  # of the workers in all panels; a browser takes about a millisecond for each
MOST_LANES = 32  # if there are more workers, `timeline` draws bands instead of their lanes
LEAST_SHARE = 1.5e-3  # of the window: about a pixel
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
        """From `start_seconds` to `end_seconds`; None ends it after `MOST_STEPS` steps or, for many workers, earlier.

        figure: the name of the figure, for the error. Raises InputError where the window is empty, or starts before 0.
        """
        end = _end_of_window(traces, start_seconds) if end_seconds is None else end_seconds
        fault = None if end > start_seconds else "the window must end after it starts"
        if start_seconds < 0.0:
            fault = "the window must not start before the run"
        if fault is not None:
            last = show(max(trace.total_seconds for trace in traces), "second")
            asked = f"{figure}(start_seconds, end_seconds)"
            raise InputError.of(asked, (start_seconds, end), fault, f"take times between 0 s and {last}")
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


def _end_of_window(traces: Sequence[Trace], start_seconds: float) -> float:
    """The time when each worker has done as many steps as the panels have room for."""
    starts = [
        trace.spans.start_seconds[trace.spans.worker < trace.workers]
        if trace.workers <= MOST_LANES
        else np.repeat(trace.updates.time_seconds, _bars_of_an_update(trace))
        for trace in traces
    ]
    drawn = np.sort(np.concatenate(starts))
    drawn = drawn[drawn >= start_seconds]
    for steps in range(MOST_STEPS, FEWEST_STEPS, -1):
        end = max(end_of_steps(trace, start_seconds, steps) for trace in traces)
        if np.searchsorted(drawn, end) <= MOST_BARS:
            return end
    return max(end_of_steps(trace, start_seconds, FEWEST_STEPS) for trace in traces)


def _bars_of_an_update(trace: Trace) -> int:
    """Where workers have no lanes: its mark, the server's receive and send, and the spans of two workers."""
    spans_of_two = 2 * len(trace.spans) / (max(len(trace.updates), 1) * (trace.workers + trace.servers))
    return 3 + round(spans_of_two)


def end_of_steps(trace: Trace, start_seconds: float, steps: int) -> float:
    """The time when each worker has done about so many steps since the start of the window.

    Where updates wait for all workers, a step is one update; otherwise a step is one update per worker.
    """
    times = np.sort(trace.updates.time_seconds)
    times = times[times > start_seconds]
    if not len(times):
        return float(trace.spans.end_seconds.max(initial=0.0))
    per_step = 1 if trace.scenario.policy.has_global_step else trace.workers
    last = times[min(steps * per_step, len(times)) - 1]
    return float(last + 0.01 * (last - start_seconds))


def layout(
    traces: Sequence[Trace], names: list[str], window: Window, axes: Sequence[LaneAxis] | None = None
) -> dict[str, Any]:
    """The panels: axes, lanes and headings. axes: of the panels' lanes; None gives each worker a lane."""
    axes = [LaneAxis.of(trace) for trace in traces] if axes is None else axes
    row_pixels = int(np.clip((640 if len(traces) == 1 else 460) / max(axis.rows for axis in axes), 7, 30))
    pixels = [row_pixels * axis.rows for axis in axes]
    inner = sum(pixels) + GAP_PIXELS * (len(traces) - 1)
    found: dict[str, Any] = {
        "template": template(), "barmode": "overlay", "hovermode": "closest",
        "height": TOP_PIXELS + AXIS_PIXELS + inner, "margin": {"t": TOP_PIXELS, "b": AXIS_PIXELS, "l": 10, "r": 12},
        "legend": {"y": 1.0 + 26 / inner, "itemsizing": "constant"}, "annotations": [],
    }  # fmt: skip
    reach = [window.scale * window.start_seconds, window.scale * window.end_seconds]
    top = inner
    for panel, (axis, name) in enumerate(zip(axes, names, strict=True), start=1):
        x, y = _axes(panel)
        lowest = panel == len(axes)
        found[_axis_key(x)] = {
            "anchor": y, "range": reach, "minallowed": reach[0], "maxallowed": reach[1], "showgrid": True,
            **({"title": {"text": f"time ({window.unit})"}} if lowest else
               {"matches": _axes(len(axes))[0], "showticklabels": False}),
        }  # fmt: skip
        found[_axis_key(y)] = {
            "anchor": x, "domain": [(top - pixels[panel - 1]) / inner, top / inner], **axis.drawn(row_pixels),
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


@dataclass(frozen=True)
class LaneAxis:
    """The vertical axis of a panel: its height in rows, and the names by place. The last `servers` names are kept."""

    rows: int
    names: Mapping[float, str]
    servers: int

    @classmethod
    def of(cls, trace: Trace) -> LaneAxis:
        """A lane for each worker and each server."""
        ranks = range(trace.workers + trace.servers)
        return cls(rows(trace), {row_of(trace, rank): trace.lane(rank) for rank in ranks}, trace.servers)

    def drawn(self, row_pixels: int) -> dict[str, Any]:
        """The axis for plotly. If rows are narrow, only some workers and all servers have names."""
        every = 1 if row_pixels >= 14 else 2 if row_pixels >= 11 else 4
        workers = len(self.names) - self.servers
        places = list(self.names)
        kept = places[: workers if every == 1 else workers - every // 2 : every] + places[workers:]
        return {
            "range": [self.rows - 0.4, -0.6], "tickvals": kept, "ticktext": [self.names[place] for place in kept],
            "tickfont": {"size": SMALL + 1 if every == 1 else SMALL}, "showgrid": False, "fixedrange": True,
        }  # fmt: skip


def lanes(trace: Trace, window: Window) -> list[Drawing]:
    """The drawings of one run: bars by category, updates, and gradients that were not applied."""
    return [*of_spans(trace, window), *updates(trace, window, rows(trace)), *gradients_lost(trace, window)]


def of_spans(trace: Trace, window: Window, spans: Spans | None = None, gap_seconds: float = 0.0) -> list[Drawing]:
    """The bars of a run by category. spans: the spans to draw; None draws all. gap_seconds: see `bars`."""
    found = bars(trace, window.start_seconds, window.end_seconds, spans, gap_seconds)
    return [_bars(look, drawn, window) for look, drawn in found.items()]


def placed(panel: int, drawings: Sequence[Drawing]) -> list[Drawing]:
    """The drawings in a panel; a click on a name in the legend hides it in all panels."""
    x, y = _axes(panel)
    return [drawing | {"legendgroup": drawing["name"], "xaxis": x, "yaxis": y} for drawing in drawings]


def with_legend(drawings: Sequence[Drawing], window: Window) -> list[Drawing]:
    """The drawings, with each name once in the legend, but for names whose bars are all too short to show a colour."""
    least = LEAST_SHARE * (window.end_seconds - window.start_seconds) * window.scale
    seen = {one["name"] for one in drawings if one["type"] != "bar" or np.max(one["x"], initial=0.0) >= least}
    names = [drawing["name"] for drawing in drawings]
    return [
        drawing | {"showlegend": name in seen and name not in names[:place]}
        for place, (name, drawing) in enumerate(zip(names, drawings, strict=True))
    ]


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


def updates(trace: Trace, window: Window, height: float) -> list[Drawing]:
    """A line at each update, over the whole `height` of the panel in rows, or a tick at its top.

    It is a tick if the updates are many, or if the workers do not wait for them: a line would hide a server's messages.
    """
    updates = trace.updates.where(window.touches(trace.updates.time_seconds, trace.updates.time_seconds))
    if not len(updates):
        return []
    times: Floats = updates.time_seconds * window.scale
    waited = "scenario" not in trace.metadata or trace.scenario.policy.has_global_step
    through = waited and len(updates) <= MANY_MARKS
    bottom = height - 0.45 if through else 0.0
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


def gradients_lost(trace: Trace, window: Window) -> list[Drawing]:
    """A mark for each dropped and each cancelled gradient, in its worker's lane."""
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
