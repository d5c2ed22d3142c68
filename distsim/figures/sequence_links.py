"""A server's link in a sequence diagram: a strip on each side of the lifeline, darker where more messages share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats
from distsim.figures.sequence_messages import MessageKind, Messages, places
from distsim.figures.theme import DOWN, UP
from distsim.figures.wording import enumerated
from distsim.trace import Trace, Transfers

STRIP = 0.07  # the width of a strip


@dataclass(frozen=True)
class Use:
    """When one direction of a server's link carries messages: the spells, and how many messages each spell has."""

    start_seconds: Floats
    end_seconds: Floats
    messages: list[int]

    @classmethod
    def of(cls, own: Transfers, start_seconds: float, end_seconds: float) -> Self:
        """The use by these transfers within a window.

        >>> rows = {"start_seconds": [0.0, 1.0, 5.0], "end_seconds": [2.0, 3.0, 6.0]}
        >>> other = dict.fromkeys(("source", "target", "bytes", "chunk", "collective"), [0, 0, 0])
        >>> use = Use.of(Transfers.of_columns(rows | other), 0.5, 9.0)
        >>> use.start_seconds.tolist(), use.end_seconds.tolist(), use.messages
        ([0.5, 1.0, 2.0, 5.0], [1.0, 2.0, 3.0, 6.0], [1, 2, 1, 1])
        """
        starts, ends = (np.clip(times, start_seconds, end_seconds) for times in (own.start_seconds, own.end_seconds))
        edges = np.unique(np.concatenate([starts, ends]))
        under_way = np.array([int(((starts <= edge) & (ends > edge)).sum()) for edge in edges[:-1]], dtype=int)
        busy = under_way > 0
        return cls(edges[:-1][busy], edges[1:][busy], under_way[busy].tolist())

    @property
    def seconds(self) -> float:
        """How long there are messages."""
        return float((self.end_seconds - self.start_seconds).sum())


Links = dict[tuple[int, MessageKind], Use]  # by server and direction: its pushes, its answers


def links(trace: Trace, found: dict[MessageKind, Messages], start_seconds: float, end_seconds: float) -> Links:
    """The use of each server's link by the messages of a window."""
    return {
        (server, kind): Use.of(own.transfers.where(ends == server), start_seconds, end_seconds)
        for kind, own in found.items()
        if kind != "transfer"
        for ends in (own.transfers.target if kind == "push" else own.transfers.source,)
        for server in range(trace.workers, trace.workers + trace.servers)
    }


def add_links(figure: go.Figure, trace: Trace, found: Links, scale: float, unit: str) -> None:
    """Draws the strips."""
    at = places(trace)
    most = max((max(use.messages) for use in found.values() if use.messages), default=1)
    for kind, look, side in (("push", DOWN, -1), ("answer", UP, 1)):
        own = [(server, use) for (server, of), use in found.items() if of == kind and use.messages]
        if not own:
            continue
        servers = np.concatenate([np.full(len(use.messages), server) for server, use in own])
        starts, ends, numbers = (
            np.concatenate(columns)
            for columns in zip(*((use.start_seconds, use.end_seconds, use.messages) for _, use in own), strict=True)
        )
        figure.add_bar(
            x=at[servers] + side * STRIP / 2, base=starts * scale, y=(ends - starts) * scale, width=STRIP,
            name=f"server's {look.name}",
            marker={"color": look.colour, "opacity": 0.3 + 0.7 * numbers / most, "line": {"width": 0}},
            customdata=np.column_stack([ends * scale, numbers]),
            hovertemplate=f"<b>%{{customdata[1]}} at once</b><br>%{{base:.3f}} to %{{customdata[0]:.3f}} {unit}"
            "<extra></extra>",
        )  # fmt: skip


def told(found: Links, seconds: float) -> str:
    """How much of the time a single server's link carries messages; nothing for several servers."""
    if len({server for server, _ in found}) != 1:
        return ""
    doing = {"push": "receives", "answer": "sends"}
    shares = [f"{doing[kind]} for {100.0 * use.seconds / seconds:.0f} %" for (_, kind), use in found.items()]
    return f" The server {enumerated(shares)} of the time."
