"""The updates to a target loss against the batch, and the curve of the noise scale through them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import FORMULA, INK, MARKS, RUNS, SMALL, template
from distsim.figures.wording import above_or_below
from distsim.statistics import interval
from distsim.theory.noise_scale import fitted, updates_to_target

HEIGHT = 400
CURVE_POINTS = 60
COUNTS = [part * 10**power for power in range(7) for part in (1, 2, 5)]  # that an axis names


def noise_scale(updates: Mapping[int, ArrayLike]) -> Captioned:
    """Draws the mean updates of each batch, and the curve S_min (1 + B_noise / B) nearest to them.

    updates: for each batch, the updates of several runs. Two runs or more give a 95 % interval. Both axes are
    logarithmic.

    Raises InputError for fewer than two batches, and where the updates do not fall as batches grow.

    >>> noise_scale({8: [150.0], 32: [75.0], 512: [51.5625]}).summary
    'The nearest curve has a noise scale of 16 samples and at least 50 updates; it is farthest from the runs at a \
batch of 8: 0 % off.'
    """
    counts = {batch: np.atleast_1d(np.asarray(updates[batch], dtype=float)) for batch in sorted(updates)}
    if any(not len(runs) or not (runs > 0).all() or not np.isfinite(runs).all() for runs in counts.values()):
        raise InputError.of(
            "noise_scale(updates)", dict(updates), "must be numbers above 0, at least one for each batch",
            "leave out runs that do not get to the target",
        )  # fmt: skip
    means = {batch: float(runs.mean()) for batch, runs in counts.items()}
    least, scale = fitted(list(means), list(means.values()))
    curve = {batch: float(updates_to_target(least, scale, batch)) for batch in means}
    worst = max(curve, key=lambda batch: abs(curve[batch] / means[batch] - 1.0))
    summary = (
        f"The nearest curve has a noise scale of {scale:.3g} samples and at least {least:.3g} updates; "
        f"it is farthest from the runs at a batch of {worst}: {above_or_below(curve[worst], means[worst])}."
    )
    table = [_row(batch, runs, curve[batch]) for batch, runs in counts.items()]
    return Captioned(_drawn(table, least, scale), summary, table)


def _row(batch: int, runs: np.ndarray, by_curve: float) -> Row:
    mean, low, high = interval(runs).within(1.0, math.inf) if len(runs) > 1 else (float(runs[0]), None, None)
    return {
        "samples per update": batch, "runs": len(runs), "updates": mean, "95 % from": low, "to": high,
        "updates by the curve": by_curve, "samples": batch * mean,
    }  # fmt: skip


def _drawn(table: list[Row], least: float, scale: float) -> go.Figure:
    batches = np.array([row["samples per update"] for row in table], dtype=float)
    means = np.array([row["updates"] for row in table], dtype=float)
    ends = [
        np.array([row[end] if row[end] is not None else row["updates"] for row in table]) for end in ("95 % from", "to")
    ]
    reach = np.geomspace(batches[0], batches[-1], CURVE_POINTS)
    figure = go.Figure()
    figure.add_scatter(
        x=reach, y=updates_to_target(least, scale, reach), mode="lines", name="nearest curve",
        line={"color": FORMULA.colour, "width": 2.5},
        hovertemplate="by the curve: %{y:.3g} updates<extra></extra>",
    )  # fmt: skip
    halved = np.array([batches[0], min(scale, batches[-1])])
    _add_limit(figure, "least updates", batches[[0, -1]], np.full(2, least), "dot")
    if scale > batches[0]:
        _add_limit(figure, "twice the batch, half the updates", halved, least * scale / halved, "dash")
    figure.add_scatter(
        x=batches, y=means, mode="markers", name="mean of the runs",
        error_y={"type": "data", "array": ends[1] - means, "arrayminus": means - ends[0], "color": INK},
        marker={"symbol": MARKS[0], "size": 10, "color": RUNS[0].colour, "line": {"color": INK, "width": 1}},
        hovertemplate="batch %{x}: %{y:.4g} updates<extra></extra>",
    )  # fmt: skip
    if batches[0] < scale < batches[-1]:
        figure.add_annotation(
            x=np.log10(scale), y=np.log10(2 * least), text=f"noise scale {scale:.3g}: twice the least updates",
            ax=20, ay=-34, xanchor="left", arrowcolor=INK, font={"size": SMALL, "color": INK},
        )  # fmt: skip
    figure.update_layout(template=template(), height=HEIGHT, margin={"t": 60, "b": 50, "l": 10, "r": 20})
    figure.update_xaxes(
        type="log", title_text="samples per update", tickvals=batches, ticktext=[f"{batch:.0f}" for batch in batches]
    )
    figure.update_yaxes(
        type="log", title_text="updates to the target", tickvals=COUNTS, ticktext=[f"{count:,}" for count in COUNTS]
    )
    return figure


def _add_limit(figure: go.Figure, name: str, x: np.ndarray, y: np.ndarray, dash: str) -> None:
    """A straight line that the curve comes near, far below the noise scale or far above it."""
    line = {"color": INK, "width": 1.2, "dash": dash}
    figure.add_scatter(x=x, y=y, mode="lines", name=name, line=line, hoverinfo="skip")
