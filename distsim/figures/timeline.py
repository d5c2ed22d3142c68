"""The timeline: a lane for each worker and server with all its spans, the prediction above the measurement.

Many workers share bands that tell how many of them do what; the median and the slowest worker have lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures import timeline_bands
from distsim.figures.arguments import run_names
from distsim.figures.captioned import Captioned, Row
from distsim.figures.timeline_lanes import MOST_LANES, LaneAxis, Window, lanes, layout, placed, with_legend
from distsim.figures.wording import above_or_below, counted
from distsim.metrics import dropped_gradients, paused_seconds, worker_seconds
from distsim.trace import PAUSE_KINDS, SpanKind, Trace


def timeline(
    *traces: Trace, start_seconds: float = 0.0, end_seconds: float | None = None, names: Sequence[str] | None = None
) -> Captioned:
    """Draws the lanes of one or more runs from `start_seconds` to `end_seconds`, a panel for each run.

    All panels have the same time axis. A run of more than 32 workers has bands instead of the workers' lanes: they tell
    how many workers compute, communicate or wait. Below are the lanes of the median and the slowest worker, if there
    are at most two runs. The summary tells which part is drawn, and the error of a simulated run's total against
    measured runs. end_seconds: None shows the first steps of every worker, about ten updates if each update waits for
    all workers, and fewer of many workers. names: of the panels; None takes the producer of the trace, "simulated" or
    "measured".

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
        figure = go.Figure(layout=layout(traces, shown_names, Window(0.0, 1.0)))
        return Captioned(figure, "Nothing was recorded, so nothing is drawn.", [])
    window = Window.of("timeline", traces, start_seconds, end_seconds)
    drawn = [
        one
        for panel, trace in enumerate(traces, start=1)
        for one in placed(
            panel, timeline_bands.bands(trace, window, len(traces)) if _many(trace) else lanes(trace, window)
        )
    ]
    axes = [timeline_bands.axis(trace, window, len(traces)) if _many(trace) else LaneAxis.of(trace) for trace in traces]
    figure = go.Figure(with_legend(drawn, window), layout(traces, shown_names, window, axes))
    paused = [paused_seconds(trace) for trace in traces]
    pauses = [kind for kind in PAUSE_KINDS if any(kind in found for found in paused)]
    table = [_row(trace, name, pauses) for trace, name in zip(traces, shown_names, strict=True)]
    told = [*map(_sentence, table), *_errors(traces, shown_names)]
    return Captioned(figure, " ".join(told) + window.told(traces), table)


def _many(trace: Trace) -> bool:
    """Whether there are more workers than lanes."""
    return trace.workers > MOST_LANES


def _row(trace: Trace, name: str, pauses: Sequence[SpanKind]) -> Row:
    """A row of the table. pauses: the kinds of span with their own columns, which do not count as waiting."""
    seconds, paused = worker_seconds(trace), paused_seconds(trace)
    seconds["waiting"] = np.maximum(seconds["waiting"] - sum(paused.values()), 0.0)
    start, end = trace.bounds_seconds
    whole = max((end - start) * trace.workers, 1e-300)
    share = {part: 100.0 * float(of_part.sum()) / whole for part, of_part in seconds.items()}
    paused_share = {kind: 100.0 * float(np.sum(paused.get(kind, 0.0))) / whole for kind in pauses}
    return {
        "run": name,
        "updates": len(np.unique(trace.updates.version)),  # each of several servers makes a part of one
        "total (s)": end - start,
        "compute (%)": share["compute"],
        "communication (%)": share["communication"],
        "waiting (%)": share["waiting"],
        **{f"{kind.words} (%)": share for kind, share in paused_share.items()},
        "dropped gradients": dropped_gradients(trace),
        "cancelled gradients": int(trace.contributions.cancelled.sum()),
    }


def _sentence(row: Row) -> str:
    lost = "".join(
        f"; {row[key]} {key if row[key] != 1 else key[:-1]}"
        for key in ("dropped gradients", "cancelled gradients")
        if row[key]
    )
    pauses = [(kind.words, row.get(f"{kind.words} (%)")) for kind in PAUSE_KINDS]
    paused = ", ".join(f"{words} {share:.0f} %" for words, share in pauses if share)
    return (
        f"{str(row['run']).capitalize()}: {counted(int(row['updates'] or 0), 'update')} "
        f"in {row['total (s)']:.3g} s, of which an average worker computes {row['compute (%)']:z.0f} %, "
        f"communicates {row['communication (%)']:z.0f} % and waits {row['waiting (%)']:z.0f} %"
        f"{f'; {paused}' if paused else ''}{lost}."
    )


def _errors(traces: Sequence[Trace], names: Sequence[str]) -> list[str]:
    """The error of the one simulated run's total against each measured run with as many updates."""
    runs = list(zip(traces, names, strict=True))
    predictions = [run for run in runs if run[0].producer == "simulated"]
    if len(predictions) != 1:
        return []
    [(predicted, name)] = predictions
    return [
        f"The total of the {name} run is {above_or_below(predicted.total_seconds, measured.total_seconds)} "
        f"that of the {other} run."
        for measured, other in runs
        if measured.producer == "measured"
        and len(measured.updates) == len(predicted.updates) > 0
        and predicted.part_seconds is measured.part_seconds is None
    ]
