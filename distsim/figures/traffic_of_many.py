"""The traffic of more ranks than a map has cells for: from group to group, and over each class of links."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.arrays import Floats, Indices
from distsim.cluster import DIRECTIONS, LinkName
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import BYTES, DOWN, INK, LABEL_PAPER, SMALL, UP, template
from distsim.figures.traffic_wording import link_name, sentence
from distsim.link_traffic import carried_by_link, links
from distsim.trace import Trace
from distsim.units import show

CELLS = 128  # of the map, in each direction
POINTS = 200  # of a class's line
FAR_APART = 50.0  # the axis is logarithmic if the most is more times the least
NAMES = {"up": "up-links", "down": "down-links", "fast up": "up-links in nodes", "fast down": "down-links in nodes"}
LINES = {  # of up-links are wide, since those of down-links often lie on them
    "up": {"color": UP.colour, "width": 6}, "down": {"color": DOWN.colour, "width": 2},
    "fast up": {"color": UP.colour, "width": 6, "dash": "dot"},
    "fast down": {"color": DOWN.colour, "width": 2, "dash": "dot"},
}  # fmt: skip
MEGA = 1e6


def drawn(trace: Trace, source: Indices, target: Indices, num_bytes: Floats) -> Captioned:
    """The figure `traffic` of these bytes from rank to rank."""
    by_link = carried_by_link(trace)
    carried = {link: by_link.get(link, 0.0) for link in links(trace)}
    classes = {
        direction: sorted(
            (link for link in carried if link[0] == direction), key=lambda link: carried[link], reverse=True
        )
        for direction in DIRECTIONS
    }
    classes = {direction: found for direction, found in classes.items() if found}
    figure = make_subplots(cols=2, column_widths=[0.54, 0.46], horizontal_spacing=0.14)
    _add_map(figure, trace, source, target, num_bytes)
    _add_classes(figure, trace, carried, classes)
    figure.update_layout(
        template=template(), height=560, margin={"t": 74, "b": 54, "l": 10, "r": 14}, legend={"y": 1.05}
    )
    table: list[Row] = [
        {
            "links": NAMES[direction],
            "number": len(found),
            "least (MB)": carried[found[-1]] / MEGA,
            "median (MB)": carried[found[len(found) // 2]] / MEGA,
            "most (MB)": carried[found[0]] / MEGA,
            "busiest": _busiest(trace, carried, found),
        }
        for direction, found in classes.items()
    ]
    of_nics = {link: value for link, value in carried.items() if not link[0].startswith("fast")}
    return Captioned(figure, sentence(trace, of_nics, float(num_bytes.sum())), table)


def _add_map(figure: go.Figure, trace: Trace, source: Indices, target: Indices, num_bytes: Floats) -> None:
    """Draws the bytes from each group of neighbouring ranks to each other group."""
    ranks = trace.workers + trace.servers
    group = -(-ranks // CELLS)
    cells = -(-ranks // group)
    between = np.bincount(source // group * cells + target // group, num_bytes, cells**2).reshape(cells, cells) / MEGA
    first = (group - 1) / 2
    figure.add_heatmap(
        z=np.where(between > 0.0, between, np.nan).astype(np.float32), x0=first, dx=group, y0=first, dy=group,
        colorscale=BYTES, zmin=0.0, zmax=max(float(between.max(initial=0.0)), 1e-6), showscale=False,
        name="between ranks",
        hovertemplate=f"from {group} ranks around %{{y:d}} to {group} around %{{x:d}}: %{{z:.4g}} MB<extra></extra>",
        row=1, col=1,
    )  # fmt: skip
    figure.update_yaxes(title_text="from rank", range=[ranks - 0.5, -0.5], showgrid=False, row=1, col=1)
    figure.update_xaxes(title_text="to rank", range=[-0.5, ranks - 0.5], showgrid=False, nticks=6, row=1, col=1)
    figure.add_annotation(
        text=f"MB from rank to rank, {group} ranks to a cell", x=0.0, y=1.0, xref="x domain", yref="y domain",
        xanchor="left", yanchor="bottom", showarrow=False, font_size=SMALL + 1,
    )  # fmt: skip


def _add_classes(
    figure: go.Figure, trace: Trace, carried: dict[LinkName, float], classes: dict[str, list[LinkName]]
) -> None:
    """Draws for each class the bytes of its links, from most to least, and names the busiest link."""
    for direction, found in classes.items():
        places = np.unique(np.linspace(0, len(found) - 1, POINTS).round().astype(int))
        values = np.array([carried[found[place]] for place in places.tolist()]) / MEGA
        figure.add_scatter(
            x=100.0 * (places + 0.5) / len(found), y=values, mode="lines", name=NAMES[direction],
            line=LINES[direction],
            hovertemplate=f"{NAMES[direction]}, at %{{x:.3g}} % of them: %{{y:.4g}} MB<extra></extra>",
            row=1, col=2,
        )  # fmt: skip
    found_bytes = [value for value in carried.values() if value > 0.0]
    by_logarithm = bool(found_bytes) and max(found_bytes) > FAR_APART * min(carried.values()) > 0.0
    figure.update_xaxes(title_text="links, the busiest first (%)", range=[0, 100], row=1, col=2)
    figure.update_yaxes(title_text="bytes of a link (MB)", row=1, col=2)
    figure.update_yaxes(**({"type": "log"} if by_logarithm else {"rangemode": "tozero"}), row=1, col=2)
    figure.add_annotation(
        text="MB over each link", x=0.0, y=1.0, xref="x2 domain", yref="y2 domain", xanchor="left", yanchor="bottom",
        showarrow=False, font_size=SMALL + 1,
    )  # fmt: skip
    uneven = [found for found in classes.values() if carried[found[0]] > 1.001 * carried[found[len(found) // 2]]]
    for found in uneven:
        most = carried[found[0]] / MEGA
        figure.add_annotation(
            text=f"{link_name(trace, found[0])}: {show(carried[found[0]], 'byte')}", x=100.0 * 0.5 / len(found),
            y=np.log10(most) if by_logarithm else most, xref="x2", yref="y2", xanchor="left", ax=26, ay=0,
            arrowcolor=INK, bgcolor=LABEL_PAPER, font_size=SMALL,
        )  # fmt: skip


def _busiest(trace: Trace, carried: dict[LinkName, float], found: list[LinkName]) -> str:
    """The link of a class that carried most, or that all are alike."""
    if np.isclose(carried[found[0]], carried[found[-1]]):
        return "all alike"
    return link_name(trace, found[0])
