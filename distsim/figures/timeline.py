"""The key picture: one lane per worker and server, what it did when, predicted above measured on one time axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.errors import InputError
from distsim.figures.bars import Bars, Floats, bars, drops, row_of, rows
from distsim.figures.captioned import Captioned, Row
from distsim.figures.names import run_names
from distsim.figures.theme import COMMUNICATION, DROPPED, INK, PAPER, SMALL, Look, marker, template
from distsim.metrics import summary, worker_seconds
from distsim.trace import Trace
from distsim.units import show

UPDATES_SHOWN = 10
MANY_MARKS = 60  # more updates than this in one window are ticks at the panel's top, not lines through it
DROPPED_SYMBOL = {"dropped": "x", "cancelled": "diamond"}
DECIMALS = 4  # of a time in the figure: a tenth of a microsecond where the axis is in ms
TOP_PIXELS, AXIS_PIXELS, GAP_PIXELS = 100, 52, 40


def timeline(
    *traces: Trace, start_seconds: float = 0.0, end_seconds: float | None = None, names: Sequence[str] | None = None
) -> Captioned:
    """The lanes of one or more runs from `start_seconds` to `end_seconds`, one panel per run under each other.

    Lanes have the same names and the time axis is the same in all panels. end_seconds: None shows every worker's
    first steps, about `UPDATES_SHOWN` updates of a run where each update waits for all; the summary says which part is
    drawn. names: of the panels; None takes who made the trace, "simulated" or "measured".

    Raises InputError where there is no trace or the window is empty.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("backup_server"))
    >>> shown = timeline(trace)
    >>> [bar.name for bar in shown.figure.data if bar.type == "bar"]
    ['compute', 'communication', 'wait']
    >>> shown.figure.layout.xaxis.title.text
    'time (ms)'
    """
    if not traces:
        raise InputError.of("timeline(traces)", traces, "there is nothing to draw", "pass at least one trace")
    shown_names = run_names("timeline", [str(trace.producer) for trace in traces], names)
    if not any(len(trace.spans) for trace in traces):
        return Captioned(_panels(traces, shown_names, 0.0, 1.0, "s"), "Nothing was recorded, so nothing is drawn.", [])
    end = max(_end_of_steps(trace, start_seconds) for trace in traces) if end_seconds is None else end_seconds
    if not end > start_seconds:
        raise InputError.of(
            "timeline(start_seconds, end_seconds)", (start_seconds, end), "the window must end after it starts",
            f"take times between 0 and {max(trace.total_seconds for trace in traces):.4g}",
        )  # fmt: skip
    scale, unit = (1e3, "ms") if end - start_seconds < 3.0 else (1.0, "s")
    figure = _panels(traces, shown_names, start_seconds * scale, end * scale, unit)
    whole = start_seconds <= 0.0 and all(trace.total_seconds <= end for trace in traces)
    shown: set[str] = set()
    for panel, trace in enumerate(traces, start=1):
        for look, drawn in bars(trace, start_seconds, end).items():
            _add_bars(figure, panel, look, drawn, scale, unit, shown)
        _add_updates(figure, panel, trace, start_seconds, end, scale, unit, shown)
        _add_drops(figure, panel, trace, start_seconds, end, scale, unit, shown)
    table = [_row(trace, name) for trace, name in zip(traces, shown_names, strict=True)]
    drawn_part = [] if whole else [f"Drawn: {show(start_seconds, 'second')} to {show(end, 'second')}."]
    return Captioned(figure, " ".join([*(_sentence(row) for row in table), *drawn_part]), table)


def _end_of_steps(trace: Trace, start_seconds: float) -> float:
    """When about `UPDATES_SHOWN` steps of each worker are done, counted from the start of the window.

    A step of all workers is one update where updates wait for all, and else one update per worker.
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


def _panels(traces: Sequence[Trace], names: list[str], start: float, end: float, unit: str) -> go.Figure:
    """Empty panels with their axes, lanes and headings."""
    row_pixels = _row_pixels(traces)
    pixels = [row_pixels * rows(trace) for trace in traces]
    height = TOP_PIXELS + AXIS_PIXELS + sum(pixels) + GAP_PIXELS * (len(traces) - 1)
    inner = height - TOP_PIXELS - AXIS_PIXELS
    figure = make_subplots(
        rows=len(traces), shared_xaxes=True, row_heights=pixels,
        vertical_spacing=GAP_PIXELS / inner if len(traces) > 1 else 0.0,
    )  # fmt: skip
    figure.update_layout(
        template=template(), barmode="overlay", height=height, hovermode="closest",
        margin={"t": TOP_PIXELS, "b": AXIS_PIXELS, "l": 10, "r": 12},
        legend={"y": 1.0 + 26 / inner, "itemsizing": "constant"},
    )  # fmt: skip
    figure.update_xaxes(range=[start, end], minallowed=start, maxallowed=end, showgrid=True)
    figure.update_xaxes(title_text=f"time ({unit})", row=len(traces), col=1)
    every = 1 if row_pixels >= 14 else 2 if row_pixels >= 11 else 4
    for panel, (trace, name) in enumerate(zip(traces, names, strict=True), start=1):
        servers = list(range(trace.workers, trace.workers + trace.servers))
        ranks = [*range(0, trace.workers if every == 1 else trace.workers - every // 2, every), *servers]
        figure.update_yaxes(
            range=[rows(trace) - 0.4, -0.6], tickvals=[row_of(trace, rank) for rank in ranks],
            ticktext=[trace.lane(rank) for rank in ranks], tickfont_size=SMALL + 1 if every == 1 else SMALL,
            showgrid=False, fixedrange=True, row=panel, col=1,
        )  # fmt: skip
        figure.add_annotation(
            text=f"<b>{name}</b>", x=0, xref="paper", xanchor="left", yanchor="bottom", yshift=3, showarrow=False,
            yref=f"y{panel if panel > 1 else ''} domain", y=1.0,
        )  # fmt: skip
    return figure


def _once(name: str, shown: set[str]) -> dict[str, object]:
    """Legend settings: each name once for all panels, and a click on it hides it in all."""
    first = name not in shown
    shown.add(name)
    return {"name": name, "legendgroup": name, "showlegend": first}


def _add_bars(figure: go.Figure, panel: int, look: Look, drawn: Bars, scale: float, unit: str, shown: set[str]) -> None:
    start, end = np.round(drawn.start_seconds * scale, DECIMALS), np.round(drawn.end_seconds * scale, DECIMALS)
    carried = "<br>%{customdata[1]:.4s}B" if look is COMMUNICATION else ""
    figure.add_trace(
        go.Bar(
            orientation="h", base=start, x=np.round(end - start, DECIMALS), y=drawn.middle.astype(np.float32),
            width=drawn.height.astype(np.float32), marker=marker(look), hovertext=np.array(drawn.text),
            customdata=np.column_stack([drawn.step, drawn.bytes]).astype(np.float32),
            hovertemplate="<b>%{hovertext}</b>, step %{customdata[0]}<br>"
            f"%{{base:.3f}} to %{{x:.3f}} {unit}{carried}<extra></extra>",
            **_once(look.name, shown),
        ),
        row=panel, col=1,
    )  # fmt: skip


def _add_updates(
    figure: go.Figure, panel: int, trace: Trace, start: float, end: float, scale: float, unit: str, shown: set[str]
) -> None:
    updates = trace.updates.where((trace.updates.time_seconds >= start) & (trace.updates.time_seconds <= end))
    if not len(updates):
        return
    times: Floats = updates.time_seconds * scale
    bottom = rows(trace) - 0.45 if len(updates) <= MANY_MARKS else 0.0
    applied = trace.contributions.where(trace.contributions.applied)
    gradients = np.bincount(applied.version, minlength=int(updates.version.max()) + 1)[updates.version]
    text = [
        f"update {version} of {count} gradient{'s' if count != 1 else ''}"
        for version, count in zip(updates.version.tolist(), gradients.tolist(), strict=True)
    ]
    gaps = np.full(len(times), np.nan)
    figure.add_trace(
        go.Scatter(
            x=np.column_stack([times, times, gaps]).ravel(), y=np.tile([-0.55, bottom, np.nan], len(times)),
            hovertext=np.repeat(np.array(text, dtype=object), 3),
            mode="lines", line={"color": INK, "width": 1.5, "dash": "dot"},
            hovertemplate=f"<b>%{{hovertext}}</b><br>%{{x:.3f}} {unit}<extra></extra>", **_once("update", shown),
        ),
        row=panel, col=1,
    )  # fmt: skip


def _add_drops(
    figure: go.Figure, panel: int, trace: Trace, start: float, end: float, scale: float, unit: str, shown: set[str]
) -> None:
    size = 10 if rows(trace) <= 32 else 7
    for lost in drops(trace, start, end):
        figure.add_trace(
            go.Scatter(
                x=lost.seconds * scale, y=row_of(trace, lost.rank), mode="markers", hovertext=lost.text,
                marker={
                    "symbol": DROPPED_SYMBOL[lost.fate], "size": size, "color": DROPPED,
                    "line": {"color": PAPER, "width": 1},
                },
                cliponaxis=False,
                hovertemplate=f"<b>%{{hovertext}}</b><br>%{{x:.3f}} {unit}<extra></extra>",
                **_once(f"{lost.fate} gradient", shown),
            ),
            row=panel, col=1,
        )  # fmt: skip


def _row(trace: Trace, name: str) -> Row:
    seconds = worker_seconds(trace)
    whole = max(trace.total_seconds * trace.workers, 1e-300)
    share = {cause: 100.0 * float(seconds[cause].sum()) / whole for cause in ("compute", "communication", "waiting")}
    numbers = summary(trace)
    return {
        "run": name,
        "updates": len(trace.updates),
        "total (s)": trace.total_seconds,
        "compute (%)": share["compute"],
        "communication (%)": share["communication"],
        "waiting (%)": share["waiting"],
        "dropped gradients": numbers.dropped_gradients,
        "cancelled gradients": int(trace.contributions.cancelled.sum()),
    }


def _sentence(row: Row) -> str:
    lost = "".join(
        f"; {row[key]} {key if row[key] != 1 else key[:-1]}"
        for key in ("dropped gradients", "cancelled gradients")
        if row[key]
    )
    return (
        f"{str(row['run']).capitalize()}: {row['updates']} update{'s' if row['updates'] != 1 else ''} "
        f"in {row['total (s)']:.3g} s, of which an average worker computes {row['compute (%)']:.0f} %, "
        f"communicates {row['communication (%)']:.0f} % and waits {row['waiting (%)']:.0f} %{lost}."
    )
