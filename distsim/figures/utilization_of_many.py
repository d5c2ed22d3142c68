"""The use of many links over time: the range of all up-links, and a map of their use, link by link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats, Indices, Integers
from distsim.cluster import LinkName
from distsim.figures.theme import BYTES, SMALL, UP_BAND
from distsim.link_traffic import links, pairs, route
from distsim.trace import Trace, Transfers
from distsim.trace.derived import CollectiveTransfers

MAP_ROWS = 64
LOW, HIGH = 0.1, 0.9  # of the band


@dataclass(frozen=True, eq=False)
class Crossings:
    """The links of a run, and which of them each transfer crosses.

    speeds: bytes per second of the links (1 if unknown). first, last: places in `links`, by transfer; -1 inside a host.
    factor: from a share of the speed, or from bytes per second, to the unit that is drawn.
    """

    transfers: Transfers
    links: list[LinkName]
    speeds: Floats
    first: Integers
    last: Integers
    factor: float

    @classmethod
    def of(cls, trace: Trace, transfers: Transfers) -> Crossings:
        """Those of these transfers of the run."""
        derivation, simulated = trace.transfers.derivation, trace.producer == "simulated"
        if isinstance(derivation, CollectiveTransfers):
            cluster = derivation.cluster
            numbers = cluster.link_numbers
            place_of = np.full(len(cluster.link_capacities), -1)
            place_of[numbers] = np.arange(len(numbers))
            first, last = (place_of[of] for of in cluster.route_numbers(transfers.source, transfers.target)[:2])
            names = [cluster.link_name(number) for number in numbers.tolist()]
            speeds, factor = (cluster.link_capacities[numbers], 100.0) if simulated else (np.ones(len(names)), 1e-6)
            return cls(transfers, names, speeds, first, last, factor)
        found, pair_of = pairs(transfers)
        names = links(trace)
        place = {link: number for number, link in enumerate(names)}
        routes = [route(trace, *pair) for pair in found]
        ends = np.array([[place[link] for link in crossed] or [-1, -1] for crossed in routes]).reshape(-1, 2)
        speeds, factor = np.ones(len(names)), 1e-6
        if simulated:
            capacities = trace.scenario.cluster.capacities(trace.scenario.hosts)
            speeds, factor = np.array([capacities[link] for link in names]), 100.0
        return cls(transfers, names, speeds, ends[pair_of, 0], ends[pair_of, 1], factor)

    @property
    def carried(self) -> Floats:
        """The bytes of each link."""
        places = len(self.links) + 1  # the last is for what crosses no link
        both = [np.bincount(of_link % places, self.transfers.bytes, places) for of_link in (self.first, self.last)]
        return np.asarray((both[0] + both[1])[:-1])


def carried_between(
    transfers: Transfers, weights: Floats, edges: Floats, group: Integers | Indices | None = None, groups: int = 1
) -> Floats:
    """The part of the transfers' weights between neighbouring edges; shape (edges - 1,), or (groups, edges - 1).

    group: the number of each transfer's group.
    """
    length = transfers.end_seconds - transfers.start_seconds
    at_once = length <= 0.0
    rate = np.where(at_once, 0.0, weights / np.where(at_once, 1.0, length))
    of_group = np.zeros(len(transfers), dtype=np.int64) if group is None else group.astype(np.int64)
    # At each edge t, the sum of rate (t - since) over all rates that began before t, less that of the rates that ended.
    since, rates = np.concatenate([transfers.start_seconds, transfers.end_seconds]), np.concatenate([rate, -rate])
    place = np.tile(of_group * len(edges), 2) + np.searchsorted(edges[:-1], since)  # the first edge from there on
    grown, offsets = (np.bincount(place, of, groups * len(edges)).reshape(groups, -1) for of in (rates, rates * since))
    np.cumsum(grown, axis=1, out=grown)
    np.cumsum(offsets, axis=1, out=offsets)
    carried = np.maximum(np.diff(edges * grown - offsets, axis=1), 0.0)
    cell = np.searchsorted(edges[1:-1], transfers.end_seconds[at_once], side="right")
    np.add.at(carried, (of_group[at_once], cell), weights[at_once])
    return np.asarray(carried if group is not None else carried[0])


def add(figure: go.Figure, trace: Trace, crossings: Crossings, edges: Floats, scale: float) -> str:
    """Draws the band in the first row of the figure and the map in the second; a sentence about the map."""
    up = [number for number, link in enumerate(crossings.links) if link[0] == "up"]
    number_of = np.full(len(crossings.links) + 1, -1)
    number_of[up] = np.arange(len(up))
    number: Indices = number_of[crossings.first]
    rows = np.flatnonzero(number >= 0)
    own = crossings.transfers.where(rows)
    weights = own.bytes / crossings.speeds[crossings.first[rows]]
    values = carried_between(own, weights, edges, number[rows], len(up)) / np.diff(edges)
    if trace.producer == "simulated":
        values = np.minimum(values, 1.0)
    values *= crossings.factor
    low, high = np.quantile(values, [LOW, HIGH], axis=0)
    middles = scale * (edges[1:] + edges[:-1]) / 2
    figure.add_scatter(
        x=np.concatenate([middles, middles[::-1]]), y=np.concatenate([high, low[::-1]]), name="middle 80 % of up-links",
        mode="lines", line={"width": 0}, fill="toself", fillcolor=UP_BAND, hoverinfo="skip", row=1, col=1,
    )  # fmt: skip
    group = -(-len(up) // MAP_ROWS)
    firsts = np.arange(0, len(up), group)
    means = np.add.reduceat(values, firsts, axis=0) / np.diff(firsts, append=len(up))[:, None]
    unit = "%" if trace.producer == "simulated" else "MB/s"
    figure.add_heatmap(
        z=means.astype(np.float32), x=middles, y0=(group - 1) / 2, dy=group, colorscale=BYTES, zmin=0.0,
        zmax=float(means.max()) or 1.0, name="up-links",
        colorbar={"thickness": 12, "len": 0.46, "y": 0.0, "yanchor": "bottom", "title": {"text": unit}},
        hovertemplate=f"around NIC %{{y:d}}, %{{x:.4g}}: %{{z:.3g}} {unit}<extra></extra>", row=2, col=1,
    )  # fmt: skip
    figure.update_yaxes(title_text="up-link of NIC", range=[len(up) - 0.5, -0.5], showgrid=False, row=2, col=1)
    each = "one up-link" if group == 1 else f"the mean of {group} up-links"
    figure.add_annotation(
        text=f"a row is {each}", x=0.0, y=1.0, xref="x2 domain", yref="y2 domain", xanchor="left", yanchor="bottom",
        showarrow=False, font_size=SMALL + 1,
    )  # fmt: skip
    return f" A row of the map is {each}."
