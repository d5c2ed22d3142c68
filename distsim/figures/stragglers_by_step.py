"""The compute times of a run with many workers: their range step by step, and a map of workers and steps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats
from distsim.figures.theme import COMPUTE_BAND, MAGNITUDE, SMALL, Look
from distsim.units import show

MOST_STEPS = 200  # if there are more, neighbouring steps are drawn together
MAP_ROWS = 64
LOW, HIGH = 0.1, 0.9  # of the band


def add(figure: go.Figure, seconds: Floats, of_run: Look, scale: float, unit: str) -> str:
    """Draws two panels in the second row of the figure; a sentence about the slowest worker.

    seconds: of compute, shape (steps, workers). of_run: the look of the run's numbers. scale, unit: of time.
    """
    steps, workers = seconds.shape
    first = np.unique(np.linspace(0, steps, min(steps, MOST_STEPS) + 1).round().astype(int))
    blocks = [seconds[low:high] for low, high in pairwise(first.tolist())]
    low, middle, high = np.array([np.quantile(block, [LOW, 0.5, HIGH]) for block in blocks]).T * scale
    slowest = np.array([block.max(axis=1).mean() for block in blocks]) * scale
    step = (first[:-1] + first[1:] - 1) / 2
    figure.add_scatter(
        x=np.concatenate([step, step[::-1]]), y=np.concatenate([high, low[::-1]]), name="middle 80 % of workers",
        mode="lines", line={"width": 0}, fill="toself", fillcolor=COMPUTE_BAND, hoverinfo="skip", row=2, col=1,
    )  # fmt: skip
    for name, values, line in (
        ("median worker", middle, {"color": of_run.colour, "width": 2, "dash": "dot"}),
        ("slowest worker", slowest, {"color": of_run.colour, "width": 2}),
    ):
        figure.add_scatter(
            x=step, y=values, mode="lines", name=name, line=line,
            hovertemplate=f"{name}, step %{{x:.0f}}: %{{y:.4g}} {unit}<extra></extra>", row=2, col=1,
        )  # fmt: skip
    figure.update_xaxes(title_text="step", range=[-0.5, steps - 0.5], row=2, col=1)
    figure.update_yaxes(title_text=f"compute time ({unit})", rangemode="tozero", row=2, col=1)
    group = -(-workers // MAP_ROWS)
    of_workers = np.maximum.reduceat(seconds, np.arange(0, workers, group), axis=1)
    cells = np.array([of_workers[at:until].mean(axis=0) for at, until in pairwise(first.tolist())]).T
    figure.add_heatmap(
        z=(cells * scale).astype(np.float32), x=step, y0=(group - 1) / 2, dy=group, colorscale=MAGNITUDE,
        name="slowest of a row",
        colorbar={"thickness": 12, "len": 0.42, "y": 0.0, "yanchor": "bottom", "title": {"text": unit}},
        hovertemplate=f"around worker %{{y:d}}, step %{{x:.0f}}: %{{z:.4g}} {unit}<extra></extra>", row=2, col=2,
    )  # fmt: skip
    figure.update_xaxes(title_text="step", range=[-0.5, steps - 0.5], row=2, col=2)
    figure.update_yaxes(title_text="worker", range=[workers - 0.5, -0.5], showgrid=False, row=2, col=2)
    for axis, text in (
        ("3", "the run, step by step"),
        ("4", "each worker" if group == 1 else f"the slowest of {group} workers in each row"),
    ):
        figure.add_annotation(
            text=text, x=0.0, y=1.0, xref=f"x{axis} domain", yref=f"y{axis} domain", xanchor="left", yanchor="bottom",
            showarrow=False, font_size=SMALL + 1,
        )  # fmt: skip
    own = seconds.mean(axis=0)
    last = int(own.argmax())
    return (
        f" Over the run worker {last} is the slowest: {show(float(own[last]), 'second')} a step on average, and the "
        f"median worker {show(float(np.median(own)), 'second')}."
    )
