"""The ways of a plan: time against memory, and the frontier of those that no other beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from distsim.figures.captioned import Captioned, Row
from distsim.figures.prediction_errors import TICKS
from distsim.figures.theme import INK, LINKS, MARKS, template
from distsim.figures.wording import byte_unit, counted
from distsim.plan import By, Way, frontier, ranked, value_of, verdict
from distsim.policies import Sharded
from distsim.units import show

PIXELS = 420
NEAR = 3.0  # times what the ways hold; a line further right would squeeze them
LOG_FROM = 10.0  # times the least value; so far apart, at least three ticks of 1, 2 and 5 lie between them
WORTH: dict[By, tuple[float, str]] = {  # what a value is multiplied with, and the title of its axis
    "time": (1e3, "time of a sample (ms)"),
    "price": (1e6, "price of a million samples"),
}


def plan(found: Sequence[Way], memory_bytes: float | None = None, by: By = "time") -> Captioned:
    """Draws a point for each simulated way, a look for each policy, and a line along the frontier.

    memory_bytes: of a device; a vertical line, where it is near enough. by: what stands against memory, the time or the
    price of a sample. Raises InputError where nothing fits.
    """
    told = verdict(found, by)
    order, best = ranked(found, by), frontier(found, by)
    most = max(way.held.total for way in order)
    scale, unit = byte_unit(most)
    worth, of_value = WORTH[by]
    worths = {way.name: worth * (value_of(way, by) or 0.0) for way in order}
    figure = go.Figure()
    figure.update_layout(template=template(), height=PIXELS, margin={"t": 40, "b": 50, "l": 10, "r": 14})
    for number, kind in enumerate(dict.fromkeys(map(_kind, order))):
        own = [way for way in order if _kind(way) == kind]
        figure.add_scatter(
            x=[way.held.total / scale for way in own], y=[worths[way.name] for way in own], mode="markers",
            name=kind, text=[way.name for way in own],
            marker={"color": LINKS[number % len(LINKS)].colour, "symbol": MARKS[number % len(MARKS)], "size": 9,
                    "line": {"color": INK, "width": 1}},
            hovertemplate=f"%{{text}}: %{{y:.4g}}{' ms' * (by == 'time')}, %{{x:.4g}} {unit}<extra></extra>",
        )  # fmt: skip
    figure.add_scatter(
        x=[way.held.total / scale for way in best], y=[worths[way.name] for way in best], mode="lines",
        name="frontier", line={"color": INK, "width": 1.5, "dash": "dot"}, hoverinfo="skip",
    )  # fmt: skip
    near = memory_bytes is not None and memory_bytes <= NEAR * most
    if memory_bytes is not None and near:
        words = {"text": "memory of a device", "textangle": -90, "xanchor": "right", "y": 0.0, "yanchor": "bottom"}
        figure.add_vline(x=memory_bytes / scale, line={"color": INK, "width": 1.5, "dash": "dash"}, annotation=words)
    reach = 1.06 * max(most, memory_bytes if memory_bytes and near else 0.0) / scale
    figure.update_xaxes(title={"text": f"memory of the worker that holds most ({unit})"}, range=[0.0, reach])
    figure.update_yaxes(title={"text": of_value}, **_scale([*worths.values()]))
    large = sum(way.missing_bytes > 0.0 for way in found)
    more = f" {counted(large, 'way')} need more memory than there is." if large else ""
    far = f" A device has {show(memory_bytes, 'byte')}, far more than is drawn." if memory_bytes and not near else ""
    return Captioned(figure, f"{told}{more}{far}", [_row(way, way in best) for way in order])


def _scale(worths: Sequence[float]) -> dict[str, Any]:
    """From 0, or logarithmic where the slowest way would squeeze the others."""
    least, most = min(worths), max(worths)
    if most < LOG_FROM * least:
        return {"range": [0.0, 1.06 * most]}
    ticks = [tick for tick in TICKS if least / 2 <= tick <= 2 * most]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _kind(way: Way) -> str:
    """The policy, and the stage of sharded training."""
    policy = way.scenario.policy
    return f"sharded, stage {policy.stage}" if isinstance(policy, Sharded) else policy.kind.replace("_", " ")


def _row(way: Way, on_frontier: bool) -> Row:
    return {
        "way": way.name, "time of a sample": show(way.seconds_per_sample or 0.0, "second"),
        "memory": show(way.held.total, "byte"), "frontier": "yes" if on_frontier else "",
    }  # fmt: skip
