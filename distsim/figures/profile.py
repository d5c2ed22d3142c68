"""The layers of a model over one step: when each passes forward, when its gradient is computed, and its bytes."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.arrays import Floats
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import APPLY, BACKWARD, COMPUTE, LINKS, Look, marker, template
from distsim.figures.wording import byte_unit, time_unit
from distsim.profile import Layer, Profile
from distsim.units import show

FORWARD = Look("forward", COMPUTE.colour, COMPUTE.pattern)
OPTIMIZER = Look("optimizer", APPLY.colour, APPLY.pattern)
SIZE = Look("bytes", LINKS[0].colour, LINKS[0].pattern)
LAYERS_NAMED = 40
ROW_PIXELS, FRAME_PIXELS = (6.0, 26.0), 130.0


def profile(found: Profile) -> Captioned:
    """Draws a row for each layer, first layer on top: its times on the left, its bytes on the right.

    Forward goes down the rows and backward goes up. A bar of backward ends when the layer's gradient is there.

    >>> layer = Layer("weight", 4_000_000, 0.001, 0.002, (0.001, 0.001), (0.002, 0.002))
    >>> from distsim.profile import CoreSeconds
    >>> cores = CoreSeconds(1e-3, 2e-3, 5e-4)
    >>> profile(Profile("m.py:build", (layer,), 5e-4, (5e-4, 5e-4), cores, 9000, 32, "cpu", "2.9", 10)).summary
    'Forward takes 1 ms, backward 2 ms and the optimizer 500 us; half of the 4 MB are there after 100 % of backward.'
    """
    layers = found.layers[::-1]
    rows = list(range(len(layers)))
    scale, unit = time_unit(found.step_seconds)
    passed = np.array([0.0, *accumulate(layer.forward_seconds for layer in layers)])
    ready = passed[-1] + np.array([*(layer.ready_seconds for layer in layers), 0.0])
    names = [layer.name for layer in layers]
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, column_widths=[0.74, 0.26], horizontal_spacing=0.03)
    for look, starts, ends in ((FORWARD, passed[:-1], passed[1:]), (BACKWARD, ready[1:], ready[:-1])):
        figure.add_trace(_bars(look, rows, names, starts, ends, scale, unit), row=1, col=1)
    end = ready[0]
    if found.optimizer_seconds:
        figure.add_trace(
            _bars(
                OPTIMIZER, rows, names, np.full(len(rows), end), np.full(len(rows), end + found.optimizer_seconds),
                scale, unit,
            ),
            row=1, col=1,
        )  # fmt: skip
    bytes_of_unit, name_of_unit = byte_unit(max(layer.bytes for layer in layers))
    figure.add_trace(
        go.Bar(
            y=rows, x=[layer.bytes / bytes_of_unit for layer in layers], orientation="h", marker=marker(SIZE),
            showlegend=False,
            text=[f"{layer.name}: {show(layer.bytes, 'byte')}" for layer in layers], textposition="none",
            hovertemplate="%{text}<extra></extra>",
        ),
        row=1, col=2,
    )  # fmt: skip
    row_pixels = float(np.clip(600.0 / len(rows), *ROW_PIXELS))
    figure.update_layout(
        template=template(), barmode="overlay", bargap=0.15, height=FRAME_PIXELS + max(row_pixels * len(rows), 80.0),
        margin={"t": 40, "b": 50, "l": 10, "r": 12},
    )  # fmt: skip
    every = -(-len(rows) // LAYERS_NAMED)
    figure.update_yaxes(range=[len(rows) - 0.5, -0.5], tickvals=rows[::every], ticktext=names[::every], fixedrange=True)
    figure.update_xaxes(title_text=f"time in the step ({unit})", rangemode="tozero", row=1, col=1)
    figure.update_xaxes(title_text=f"bytes ({name_of_unit})", rangemode="tozero", nticks=4, row=1, col=2)
    return Captioned(figure, _sentence(found), [_row(layer) for layer in layers])


def _bars(
    look: Look, rows: list[int], names: list[str], starts: Floats, ends: Floats, scale: float, unit: str
) -> go.Bar:  # fmt: skip
    """A bar for each layer from start to end, in seconds."""
    texts = [
        f"{name}, {look.name}<br>{scale * start:.3f} to {scale * end:.3f} {unit}"
        for name, start, end in zip(names, starts, ends, strict=True)
    ]
    return go.Bar(
        y=rows, base=scale * starts, x=scale * (ends - starts), orientation="h", name=look.name, marker=marker(look),
        text=texts, textposition="none", hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def _sentence(found: Profile) -> str:
    there = np.cumsum([layer.bytes for layer in found.layers])
    half = found.layers[int(np.searchsorted(there, found.gradient_bytes / 2))]
    share = half.ready_seconds / found.backward_seconds if found.backward_seconds else 1.0
    parts = [show(seconds, "second") for seconds in (
        found.forward_seconds, found.backward_seconds, found.optimizer_seconds
    )]  # fmt: skip
    return (
        f"Forward takes {parts[0]}, backward {parts[1]} and the optimizer {parts[2]}; half of the "
        f"{show(found.gradient_bytes, 'byte')} are there after {100 * share:.0f} % of backward."
    )


def _row(layer: Layer) -> Row:
    return {
        "layer": layer.name,
        "kB": layer.bytes / 1e3,
        "forward (ms)": 1e3 * layer.forward_seconds,
        "gradient there after (ms)": 1e3 * layer.ready_seconds,
        "lower quartile (ms)": 1e3 * layer.ready_quartiles[0],
        "upper quartile (ms)": 1e3 * layer.ready_quartiles[1],
    }
