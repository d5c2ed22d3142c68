"""The key picture: one lane per worker and server, what it did when, predicted above measured on one time axis."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.lanes import Window, lanes, layout, placed, with_legend
from distsim.figures.names import run_names
from distsim.metrics import dropped_gradients, worker_seconds
from distsim.trace import Trace


def timeline(
    *traces: Trace, start_seconds: float = 0.0, end_seconds: float | None = None, names: Sequence[str] | None = None
) -> Captioned:
    """The lanes of one or more runs from `start_seconds` to `end_seconds`, one panel per run under each other.

    Lanes have the same names and the time axis is the same in all panels. end_seconds: None shows every worker's
    first steps, about ten updates of a run where each update waits for all; the summary says which part is
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
        figure = go.Figure(layout=layout(traces, shown_names, Window(0.0, 1.0)))
        return Captioned(figure, "Nothing was recorded, so nothing is drawn.", [])
    window = Window.of("timeline", traces, start_seconds, end_seconds)
    drawn = [one for panel, trace in enumerate(traces, start=1) for one in placed(panel, lanes(trace, window))]
    figure = go.Figure(with_legend(drawn), layout(traces, shown_names, window))
    table = [_row(trace, name) for trace, name in zip(traces, shown_names, strict=True)]
    return Captioned(figure, " ".join(map(_sentence, table)) + window.told(traces), table)


def _row(trace: Trace, name: str) -> Row:
    seconds = worker_seconds(trace)
    whole = max(trace.total_seconds * trace.workers, 1e-300)
    share = {cause: 100.0 * float(seconds[cause].sum()) / whole for cause in ("compute", "communication", "waiting")}
    return {
        "run": name,
        "updates": len(trace.updates),
        "total (s)": trace.total_seconds,
        "compute (%)": share["compute"],
        "communication (%)": share["communication"],
        "waiting (%)": share["waiting"],
        "dropped gradients": dropped_gradients(trace),
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
