"""The use of links over time: the busiest up-link, the busiest down-link, and the mean of all links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from plotly.subplots import make_subplots

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.figures import utilization_of_many
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import DOWN, TOTAL, UP, template
from distsim.figures.traffic_wording import link_name, nothing_drawn
from distsim.figures.utilization_of_many import Crossings, carried_between
from distsim.figures.wording import time_unit
from distsim.link_traffic import ended
from distsim.theory.arguments import is_count
from distsim.trace import Trace, Transfers
from distsim.trace.derived import CollectiveTransfers

MOST_ALONE = 32  # ranks; of more, the range of the links and a map of workers are drawn, too
MOST_ROWS = 10**6  # if more transfers follow from a few numbers, those that follow each other are drawn as one
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

    Of more than 32 ranks, a band has the middle 80 % of the up-links, and a map below has a row for each up-link, or
    for the mean of neighbouring up-links. In a run of more than a million transfers that follow from a few numbers,
    transfers that follow each other from one worker to another are drawn as one.

    Raises InputError where `intervals` is no count, or the trace is a part of a run.

    >>> import distsim
    >>> utilization(distsim.simulate(distsim.example("synchronous_ring"))).summary
    'The busiest links are the up-link of worker 0 and the down-link of worker 0. Until the last update they carry \
7.1 % and 7.1 % of their speed on average, and at most 28.6 %. The mean of all links is 7.1 %.'
    """
    if not is_count(intervals):
        raise InputError.of("utilization(intervals)", intervals, "must be a whole number of at least 1", "take 200")
    trace.check_whole("utilization(trace)")
    in_time, together = _drawn_transfers(trace)
    total = trace.total_seconds
    scale, time_axis = time_unit(total)
    simulated, many = trace.producer == "simulated", trace.workers + trace.servers > MOST_ALONE
    unit = "% of the link's speed" if simulated else "MB/s"
    rows = 2 if many and len(in_time) else 1
    figure = make_subplots(rows=rows, shared_xaxes=True, vertical_spacing=0.08)
    margin = {"t": 50, "b": 50, "l": 10, "r": 14}
    figure.update_layout(template=template(), height=360 if rows == 1 else 640, margin=margin)
    figure.update_xaxes(range=[0.0, scale * total or 1.0])
    figure.update_xaxes(title_text=f"time ({time_axis})", row=rows, col=1)
    figure.update_yaxes(title_text=f"carried ({unit})", rangemode="tozero", row=1, col=1)
    if not len(in_time):
        return Captioned(figure, nothing_drawn(trace), [])
    edges = np.linspace(0.0, total, intervals + 1)
    crossings = Crossings.of(trace, in_time)
    loads = _loads(trace, crossings, edges)
    told = ""
    if many:
        told = utilization_of_many.add(figure, trace, crossings, edges, scale)
    for load in loads:
        figure.add_scatter(
            x=scale * edges, y=np.append(load.values, load.values[-1]), mode="lines", name=load.name,
            line=LINES[load.drawn_as] | {"shape": "hv"},
            hovertemplate=f"%{{x:.4g}} {time_axis}: %{{y:.3g}} {unit.split()[0]}<extra></extra>",
            row=1, col=1,
        )  # fmt: skip
    if simulated:
        most = max(float(load.values.max()) for load in loads)
        figure.update_yaxes(range=[0, min(105.0, 1.2 * most or 105.0) if many else 105.0], row=1, col=1)
    table: list[Row] = [
        {"link": load.name, f"mean ({unit})": float(load.values.mean()), f"most ({unit})": float(load.values.max())}
        for load in loads
    ]
    if together:
        told += " Transfers that follow each other from one worker to another are drawn as one."
    return Captioned(figure, _sentence(loads, unit) + told, table)


def _drawn_transfers(trace: Trace) -> tuple[Transfers, bool]:
    """The transfers that ended by the last update, and whether those that follow each other are drawn as one."""
    derivation = trace.transfers.derivation
    if isinstance(derivation, CollectiveTransfers) and len(derivation) > MOST_ROWS:
        return derivation.bundled(MOST_ROWS)[0], True  # an update is the end of its all-reduces
    return ended(trace), False


def _loads(trace: Trace, crossings: Crossings, edges: Floats) -> list[Load]:
    """The busiest up-link, the busiest down-link, and the mean of all links."""
    transfers, speeds, duration = crossings.transfers, crossings.speeds, np.diff(edges)
    used = crossings.carried / speeds
    found = []
    for look in (UP, DOWN):
        direction = look.name.removesuffix("-link")
        own = [number for number, link in enumerate(crossings.links) if link[0].removeprefix("fast ") == direction]
        busiest = max(own, key=lambda number: used[number])
        rows = np.flatnonzero((crossings.first == busiest) | (crossings.last == busiest))
        values = carried_between(transfers.where(rows), transfers.bytes[rows] / speeds[busiest], edges) / duration
        if trace.producer == "simulated":
            values = _within_speed(values)
        found.append(Load(link_name(trace, crossings.links[busiest]), look.name, crossings.factor * values))
    weights = np.zeros(len(transfers))
    for of_link in (crossings.first, crossings.last):
        weights += np.where(of_link >= 0, transfers.bytes / speeds[of_link] / len(speeds), 0.0)
    mean = carried_between(transfers, weights, edges) / duration
    return [*found, Load("mean of all links", "mean", crossings.factor * mean)]


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
