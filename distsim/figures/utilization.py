"""The use of links over time: the busiest up-link, the busiest down-link, and the mean of all links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from distsim.arrays import Floats
from distsim.cluster import LinkName
from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import DOWN, TOTAL, UP, template
from distsim.figures.traffic import link_name, nothing_drawn
from distsim.figures.wording import time_unit
from distsim.link_traffic import ended, links, pairs, route
from distsim.theory.arguments import is_count
from distsim.trace import Trace, Transfers

LINES = {
    UP.name: {"color": UP.colour, "width": 2}, DOWN.name: {"color": DOWN.colour, "width": 2, "dash": "dash"},
    "mean": {"color": TOTAL.colour, "width": 2, "dash": "dot"},
}  # fmt: skip


@dataclass(frozen=True)
class Load:
    """The bytes on one link, or the mean of all links, in each interval of time: in % of the speed, or in MB/s."""

    name: str
    drawn_as: str
    values: Floats


def utilization(trace: Trace, intervals: int = 200) -> Captioned:
    """Draws the bytes on links until the last update, in `intervals` equal parts of this time.

    The unit is percent of the link's speed for a simulated run, and MB/s for a measured run, whose links have no known
    speed. A trace holds only the start and the end of a transfer, so the bytes are spread evenly over the transfer's
    time. Bytes above the link's speed move to the nearest later time with room.

    Raises InputError where `intervals` is no count.

    >>> import distsim
    >>> utilization(distsim.simulate(distsim.example("synchronous_ring"))).summary
    'The busiest links are the up-link of worker 0 and the down-link of worker 0. Until the last update they carry \
7.1 % and 7.1 % of their speed on average, and at most 28.6 %. The mean of all links is 7.1 %.'
    """
    if not is_count(intervals):
        raise InputError.of("utilization(intervals)", intervals, "must be a whole number of at least 1", "take 200")
    in_time = ended(trace)
    total = trace.total_seconds
    scale, time_axis = time_unit(total)
    figure = go.Figure()
    unit = "% of the link's speed" if trace.producer == "simulated" else "MB/s"
    figure.update_layout(template=template(), height=360, margin={"t": 50, "b": 50, "l": 10, "r": 14})
    figure.update_xaxes(title_text=f"time ({time_axis})", range=[0.0, scale * total or 1.0])
    figure.update_yaxes(title_text=f"carried ({unit})", rangemode="tozero")
    if not len(in_time):
        return Captioned(figure, nothing_drawn(trace), [])
    edges = np.linspace(0.0, total, intervals + 1)
    loads = _loads(trace, in_time, edges)
    for load in loads:
        figure.add_scatter(
            x=scale * edges, y=np.append(load.values, load.values[-1]), mode="lines", name=load.name,
            line=LINES[load.drawn_as] | {"shape": "hv"},
            hovertemplate=f"%{{x:.4g}} {time_axis}: %{{y:.3g}} {unit.split()[0]}<extra></extra>",
        )  # fmt: skip
    if trace.producer == "simulated":
        figure.update_yaxes(range=[0, 105])
    table: list[Row] = [
        {"link": load.name, f"mean ({unit})": float(load.values.mean()), f"most ({unit})": float(load.values.max())}
        for load in loads
    ]
    return Captioned(figure, _sentence(loads, unit), table)


def _loads(trace: Trace, in_time: Transfers, edges: Floats) -> list[Load]:
    """The busiest up-link, the busiest down-link, and the mean of all links."""
    found_links, speeds, member = _members(trace, in_time)
    used = np.array([(in_time.bytes[rows]).sum() for rows in member]) / speeds
    duration = np.diff(edges)
    factor = 100.0 if trace.producer == "simulated" else 1e-6
    found = []
    for look in (UP, DOWN):
        direction = look.name.removesuffix("-link")
        own = [number for number, link in enumerate(found_links) if link[0].removeprefix("fast ") == direction]
        busiest = max(own, key=lambda number: used[number])
        rows = member[busiest]
        values = _carried(in_time.where(rows), in_time.bytes[rows] / speeds[busiest], edges) / duration
        if trace.producer == "simulated":
            values = _within_speed(values)
        found.append(Load(link_name(trace, found_links[busiest]), look.name, factor * values))
    weights = np.zeros(len(in_time))
    for rows, speed in zip(member, speeds, strict=True):
        weights[rows] += in_time.bytes[rows] / speed / len(found_links)
    mean = _carried(in_time, weights, edges) / duration
    return [*found, Load("mean of all links", "mean", factor * mean)]


def _members(trace: Trace, in_time: Transfers) -> tuple[list[LinkName], Floats, list[NDArray[np.intp]]]:
    """The links of the run, their bytes per second (1 if unknown), and the transfers that crossed each link."""
    found, pair_of = pairs(in_time)
    of_pair = np.split(np.argsort(pair_of, kind="stable"), np.cumsum(np.bincount(pair_of))[:-1])
    member: dict[LinkName, list[NDArray[np.intp]]] = {link: [np.empty(0, dtype=np.intp)] for link in links(trace)}
    for pair, rows in zip(found, of_pair, strict=True):
        for link in route(trace, *pair):
            member[link].append(rows)
    speeds = np.ones(len(member))
    if trace.producer == "simulated":
        capacities = trace.scenario.cluster.capacities(trace.scenario.hosts)
        speeds = np.array([capacities[link] for link in member])
    return list(member), speeds, [np.concatenate(rows) for rows in member.values()]


def _carried(transfers: Transfers, weights: Floats, edges: Floats) -> Floats:
    """The part of the transfers' weights between neighbouring edges; shape (edges - 1,)."""
    length = transfers.end_seconds - transfers.start_seconds
    at_once = length <= 0.0
    rate = np.where(at_once, 0.0, weights / np.where(at_once, 1.0, length))
    carried = _grown(transfers.start_seconds, rate, edges) - _grown(transfers.end_seconds, rate, edges)
    jumps, _ = np.histogram(transfers.end_seconds[at_once], bins=edges, weights=weights[at_once])
    return np.asarray(np.maximum(np.diff(carried), 0.0) + jumps)


def _grown(since: Floats, rate: Floats, edges: Floats) -> Floats:
    """At each edge t, the sum of rate (t - since) over all rates that began before t, as if no rate ended."""
    first = np.searchsorted(edges, since)  # the first edge at or after the start of a rate
    begun, offsets = (np.cumsum(np.bincount(first, of, len(edges) + 1)[:-1]) for of in (rate, rate * since))
    return np.asarray(edges * begun - offsets)


def _within_speed(shares: Floats) -> Floats:
    """Moves shares above 1 to the next intervals with room, and what remains at the end to earlier intervals."""
    moved, over = shares.copy(), 0.0
    for order in (range(len(moved)), reversed(range(len(moved)))):
        for place in order:
            wanted = moved[place] + over
            moved[place] = min(1.0, wanted)
            over = wanted - moved[place]
    return moved


def _sentence(loads: list[Load], unit: str) -> str:
    up, down, mean = ((float(load.values.mean()), float(load.values.max())) for load in loads)
    short = unit.split()[0]
    of_speed = " of their speed" if short == "%" else ""
    return (
        f"The busiest links are the {loads[0].name} and the {loads[1].name}. Until the last update they carry "
        f"{up[0]:.2g} {short} and {down[0]:.2g} {short}{of_speed} on average, and at most "
        f"{max(up[1], down[1]):.3g} {short}. The mean of all links is {mean[0]:.2g} {short}."
    )
