"""The predicted duration of each step against its measured duration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned
from distsim.figures.theme import INK, RUNS, template
from distsim.metrics import step_durations
from distsim.trace import Trace


def step_scatter(predicted: Trace, measured: Trace) -> Captioned:
    """Draws a point for each step that both runs have. A point on the diagonal is an exact prediction.

    Raises InputError where both runs have steps but share none.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("synchronous_ring"))
    >>> step_scatter(trace, trace).summary
    'Of 50 steps, half are predicted within 0 % and nine in ten within 0 %.'
    """
    ours, theirs = step_durations(predicted), step_durations(measured)
    durations = dict(zip(zip(ours.worker.tolist(), ours.number.tolist(), strict=True), ours.seconds, strict=True))
    keys = list(zip(theirs.worker.tolist(), theirs.number.tolist(), strict=True))
    joined = [row for row, key in enumerate(keys) if key in durations and theirs.seconds[row] > 0.0]
    if not len(ours.seconds) or not len(theirs.seconds):
        return Captioned(_drawn([], 1.0), "No step was recorded, so nothing is drawn.", [])
    if not joined:
        counts = len(ours.seconds), len(theirs.seconds)
        raise InputError.of(
            "step_scatter(predicted, measured)", counts, "are steps of which none is in both runs",
            "pass runs of one scenario",
        )  # fmt: skip
    x = 1e3 * theirs.seconds[joined]
    y = 1e3 * np.array([durations[keys[row]] for row in joined])
    error = 100.0 * np.abs(y - x) / x
    names = [f"step {number}" if worker < 0 else f"worker {worker}, step {number}" for worker, number in keys]
    points = go.Scatter(
        x=x, y=y, mode="markers", name="step", hovertext=[names[row] for row in joined],
        marker={"color": RUNS[0].colour, "size": 8, "line": {"color": INK, "width": 0.6}},
        hovertemplate="%{hovertext}<br>measured %{x:.2f} ms<br>predicted %{y:.2f} ms<extra></extra>",
    )  # fmt: skip
    figure = _drawn([points], 1.05 * float(max(x.max(), y.max())))
    half, most = np.quantile(error, [0.5, 0.9])
    sentence = f"Of {len(joined)} steps, half are predicted within {half:.2g} % and nine in ten within {most:.2g} %."
    row = {"steps": len(joined), "median |error| (%)": float(half), "90th percentile (%)": float(most)}
    return Captioned(figure, sentence, [row])


def _drawn(points: Sequence[go.Scatter], most: float) -> go.Figure:
    """The axes up to `most` ms, and if there are points, the points and the diagonal."""
    reach = [0.0, most]
    diagonal = go.Scatter(
        x=reach, y=reach, mode="lines", line={"color": INK, "dash": "dot"}, name="exact", hoverinfo="skip"
    )
    figure = go.Figure([diagonal, *points] if points else [])
    figure.update_layout(template=template(), height=420, margin={"t": 40, "b": 50, "l": 10, "r": 12})
    figure.update_xaxes(
        title_text="measured step time (ms)", range=reach, nticks=8, constrain="domain", constraintoward="left"
    )
    figure.update_yaxes(
        title_text="predicted step time (ms)", range=reach, nticks=8, scaleanchor="x", constrain="domain"
    )
    return figure
