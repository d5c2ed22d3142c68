"""The critical path on the timeline: an outline marks the chain of spans for which the last update waited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

import numpy as np
import plotly.graph_objects as go

from distsim.critical_path import CriticalPath
from distsim.critical_path import critical_path as path_of
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import DROPPED, INK
from distsim.figures.timeline_bars import row_of, rows
from distsim.figures.timeline_lanes import Drawing, Window, lanes, layout, of_spans, placed
from distsim.figures.wording import counted
from distsim.trace import SpanKind, Trace
from distsim.units import show

ROUNDING = 1e-9  # as a share of the path; smaller gaps between spans are rounding errors
FADED = 0.25  # opacity of bars that are not on the path
OUTLINE = {"color": INK, "width": 1.6}


def critical_path(trace: Trace, start_seconds: float = 0.0, end_seconds: float | None = None) -> Captioned:
    """Draws the timeline of a run and its critical path: the chain of spans that led to the last update.

    start_seconds, end_seconds: the window to draw, as in `timeline`. The sentence and the table cover the whole chain,
    which comes from `distsim.critical_path`.

    Raises InputError where the window is empty, or the trace is a part of a run.

    >>> import distsim
    >>> shown = critical_path(distsim.simulate(distsim.example("backup_server")))
    >>> shown.figure.data[-1].name, [row["kind"] for row in shown.table]
    ('critical path', ['compute', 'receive', 'send'])
    """
    name = str(trace.producer)
    path = path_of(trace)
    if not len(path.spans):
        figure = go.Figure(layout=layout([trace], [name], Window(0.0, max(trace.total_seconds, 1e-3))))
        return Captioned(figure, "Nothing was recorded that led to an update, so no path is drawn.", [])
    window = Window.of("critical_path", [trace], start_seconds, end_seconds)
    on_path = [
        drawing | {"marker": drawing["marker"] | {"line": OUTLINE}} for drawing in of_spans(trace, window, path.spans)
    ]
    # If the path has a category, the legend shows the category's look on the path.
    told = {drawing["name"] for drawing in on_path}
    beside = [drawing | _beside(drawing, told) for drawing in lanes(trace, window)]
    drawn = placed(1, [*beside, *on_path, _chain(trace, path, window)])
    figure = go.Figure(drawn, layout([trace], [name], window))
    table = _table(path)
    return Captioned(figure, _sentence(trace, path, table) + window.told([trace]), table)


def _beside(drawing: Drawing, told: Set[str]) -> Drawing:
    """The look of a bar that is not on the path."""
    return {"opacity": FADED, "showlegend": drawing["name"] not in told} if drawing["type"] == "bar" else {}


def _chain(trace: Trace, path: CriticalPath, window: Window) -> Drawing:
    """A line along each span of the path, and from its end to the lane of the next span."""
    spans = path.spans.where(window.touches(path.spans.start_seconds, path.spans.end_seconds))
    times = np.column_stack([spans.start_seconds, spans.end_seconds]) * window.scale
    return {
        "type": "scatter", "name": "critical path", "mode": "lines", "hoverinfo": "skip",
        "line": {"color": DROPPED, "width": 2.5 if rows(trace) <= 32 else 1.5},
        "x": times.ravel(), "y": np.repeat(row_of(trace, spans.worker), 2),
    }  # fmt: skip


def _table(path: CriticalPath) -> list[Row]:
    """Seconds and share of the path for each kind of span; the longest comes first."""
    seconds = path.seconds_by_kind()
    whole = sum(seconds.values()) + path.gap_seconds
    counts = Counter(SpanKind(kind).text for kind in path.spans.kind.tolist())
    words = {kind.text: kind.words for kind in SpanKind}
    rows: list[Row] = [
        {
            "kind": words[kind],
            "spans": counts[kind],
            "time (ms)": 1e3 * took,
            "share of the path (%)": 100.0 * took / whole,
        }
        for kind, took in sorted(seconds.items(), key=lambda item: -item[1])
    ]
    gap = path.gap_seconds
    if gap > ROUNDING * whole:
        rows.append(
            {
                "kind": "between spans", "spans": None, "time (ms)": 1e3 * gap,
                "share of the path (%)": 100.0 * gap / whole,
            }
        )  # fmt: skip
    return rows


def _sentence(trace: Trace, path: CriticalPath, table: Sequence[Row]) -> str:
    shares = [f"{row['kind']} {row['share of the path (%)']:.0f} %" for row in table]
    seconds = np.bincount(path.spans.worker, path.spans.end_seconds - path.spans.start_seconds)
    most = int(seconds.argmax())
    return (
        f"The last update, at {show(trace.total_seconds, 'second')}, waited for a chain of "
        f"{counted(len(path.spans), 'span')}: {', '.join(shares)}. "
        f"{trace.lane(most).capitalize()} holds {100.0 * seconds[most] / seconds.sum():.0f} % of it."
    )
