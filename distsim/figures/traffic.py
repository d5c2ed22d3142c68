"""The bytes from each rank to each other rank, and over each NIC."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.figures import traffic_of_many
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import BYTES, DOWN, SMALL, UP, Look, marker, template
from distsim.figures.traffic_wording import nic_name, sentence
from distsim.link_traffic import bytes_by_pair, carried_by_link, links
from distsim.trace import Trace

MOST_WITH_NUMBERS = 12  # if there are more ranks, cells show no numbers
LANES_NAMED = 20
MOST_RANKS = 300  # if there are more, ranks share cells, and links are drawn by class
MEGA = 1e6


def traffic(trace: Trace) -> Captioned:
    """Draws the bytes from each rank to each other rank, and the bytes on every NIC's up-link and down-link.

    As in `distsim.metrics`, only transfers that ended by the last update count. A NIC stands in the row of the first
    rank that uses this NIC: a colocated server uses the NIC of its worker, and the workers of a node may share a NIC.

    More than 300 ranks share the cells of the map. Their links are drawn by class: the bytes of each link of the class,
    the busiest first. The table then tells how much the links of each class carried, and which link carried most.

    >>> import distsim
    >>> traffic(distsim.simulate(distsim.example("synchronous_ring"))).summary
    '1.26 GB in 1200 transfers; the busiest link, the up-link of worker 0, carries 315 MB, as much as the mean.'
    """
    ranks = trace.workers + trace.servers
    source, target, num_bytes = bytes_by_pair(trace)
    if ranks > MOST_RANKS:
        return traffic_of_many.drawn(trace, source, target, num_bytes)
    between = np.zeros((ranks, ranks))
    np.add.at(between, (source, target), num_bytes)
    by_link = carried_by_link(trace)
    nics = sorted(host for direction, host in links(trace) if direction == "up")
    up, down = (np.array([by_link.get((direction, nic), 0.0) for nic in nics]) for direction in ("up", "down"))
    figure = make_subplots(cols=2, shared_yaxes=True, column_widths=[0.62, 0.38], horizontal_spacing=0.03)
    rank_numbers, few = np.arange(ranks), ranks <= MOST_WITH_NUMBERS
    gap = 1 if ranks <= LANES_NAMED else 0
    figure.add_heatmap(
        z=np.where(between > 0.0, between / MEGA, np.nan), x=rank_numbers, y=rank_numbers, colorscale=BYTES,
        zmin=0.0, zmax=max(float(between.max()), 1.0) / MEGA, showscale=False, xgap=gap, ygap=gap,
        texttemplate="%{z:.4~g}" if few else None, name="between ranks",
        hovertemplate="from rank %{y} to rank %{x}: %{z:.4g} MB<extra></extra>",
        row=1, col=1,
    )  # fmt: skip
    owners = [nic_name(trace, nic) for nic in nics]
    for look, of_nics in ((UP, up), (DOWN, down)):
        figure.add_bar(
            orientation="h", y=nics, x=of_nics / MEGA, marker=_bar(look, ranks), name=look.name, hovertext=owners,
            hovertemplate=f"{look.name} of %{{hovertext}}: %{{x:.4g}} MB<extra></extra>",
            row=1, col=2,
        )  # fmt: skip
    _lay_out(figure, trace)
    table: list[Row] = [
        {"NIC of": owner, "up-link (MB)": sent / MEGA, "down-link (MB)": received / MEGA}
        for owner, sent, received in zip(owners, up.tolist(), down.tolist(), strict=True)
    ]
    carried = {(direction, nic): by_link.get((direction, nic), 0.0) for direction in ("up", "down") for nic in nics}
    return Captioned(figure, sentence(trace, carried, float(between.sum())), table)


def _bar(look: Look, ranks: int) -> dict[str, object]:
    return marker(look) | ({"line": {"width": 0}} if ranks > 2 * LANES_NAMED else {})


def _lay_out(figure: go.Figure, trace: Trace) -> None:
    ranks = trace.workers + trace.servers
    if ranks <= LANES_NAMED:
        ticks = {"tickvals": list(range(ranks)), "ticktext": [trace.lane(rank) for rank in range(ranks)]}
    else:
        ticks = {"dtick": 32 if ranks > 96 else 8}
    figure.update_yaxes(range=[ranks - 0.5, -0.5], showgrid=False, **ticks)
    figure.update_yaxes(title_text="from rank", row=1, col=1)
    figure.update_xaxes(title_text="to rank", range=[-0.5, ranks - 0.5], showgrid=False, row=1, col=1)
    figure.update_xaxes(dtick=1 if ranks <= LANES_NAMED else ticks["dtick"], row=1, col=1)
    figure.update_xaxes(title_text="bytes of the link (MB)", rangemode="tozero", row=1, col=2)
    figure.add_annotation(
        text="MB from rank to rank", x=0.0, y=1.0, xref="x domain", yref="y domain", xanchor="left", yanchor="bottom",
        showarrow=False, font_size=SMALL + 1,
    )  # fmt: skip
    figure.update_layout(
        template=template(), height=float(np.clip(34 * ranks + 130, 300, 640)), bargap=0.25,
        legend={"x": 0.64}, margin={"t": 46, "b": 54, "l": 10, "r": 14},
    )  # fmt: skip
