"""The ways of a plan: time against memory, and the frontier of those that no other beats in both."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from distsim.figures.captioned import Captioned, Row
from distsim.figures.prediction_errors import TICKS
from distsim.figures.theme import INK, LINKS, MARKS, template
from distsim.figures.wording import counted
from distsim.plan import Way, frontier, ranked, verdict
from distsim.policies import Sharded
from distsim.units import show

PIXELS = 420


def plan(found: Sequence[Way], memory_bytes: float | None = None) -> Captioned:
    """Draws a point for each simulated way, a look for each policy, and a line along the frontier.

    memory_bytes: of a device; a vertical line. Raises InputError where nothing fits.
    """
    told = verdict(found)
    order, best = ranked(found), frontier(found)
    figure = go.Figure()
    figure.update_layout(template=template(), height=PIXELS, margin={"t": 40, "b": 50, "l": 10, "r": 14})
    for number, kind in enumerate(dict.fromkeys(map(_kind, order))):
        own = [way for way in order if _kind(way) == kind]
        figure.add_scatter(
            x=[way.held.total / 1e9 for way in own], y=[_milliseconds(way) for way in own], mode="markers",
            name=kind, text=[way.name for way in own],
            marker={"color": LINKS[number % len(LINKS)].colour, "symbol": MARKS[number % len(MARKS)], "size": 9,
                    "line": {"color": INK, "width": 1}},
            hovertemplate="%{text}: %{y:.4g} ms, %{x:.4g} GB<extra></extra>",
        )  # fmt: skip
    figure.add_scatter(
        x=[way.held.total / 1e9 for way in best], y=[_milliseconds(way) for way in best], mode="lines",
        name="frontier", line={"color": INK, "width": 1.5, "dash": "dot"}, hoverinfo="skip",
    )  # fmt: skip
    if memory_bytes is not None:
        figure.add_vline(x=memory_bytes / 1e9, line={"color": INK, "width": 1.5, "dash": "dash"})
    figure.update_xaxes(title={"text": "memory of the worker that holds most (GB)"}, rangemode="tozero")
    times = [_milliseconds(way) for way in order]
    ticks = [tick for tick in TICKS if min(times) / 2 <= tick <= 2 * max(times)]
    figure.update_yaxes(
        title={"text": "time of a sample (ms)"}, type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks]
    )  # fmt: skip
    large = sum(way.missing_bytes > 0.0 for way in found)
    more = f" {counted(large, 'way')} need more memory than there is." if large else ""
    return Captioned(figure, f"{told}{more}", [_row(way, way in best) for way in order])


def _kind(way: Way) -> str:
    """The policy, and the stage of sharded training."""
    policy = way.scenario.policy
    return f"sharded, stage {policy.stage}" if isinstance(policy, Sharded) else policy.kind.replace("_", " ")


def _milliseconds(way: Way) -> float:
    return 1e3 * (way.seconds_per_sample or 0.0)


def _row(way: Way, on_frontier: bool) -> Row:
    return {
        "way": way.name, "time of a sample": show(way.seconds_per_sample or 0.0, "second"),
        "memory": show(way.held.total, "byte"), "frontier": "yes" if on_frontier else "",
    }  # fmt: skip
