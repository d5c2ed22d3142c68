"""Marks that both pictures of a schedule use: the state of each chunk, new chunks, and the fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distsim.figures.collective_rounds import Round, Rounds
from distsim.figures.theme import CHUNKS, COMMUNICATION, DROPPED, PAPER

MARK = 22  # a square's size on the screen, in pixels
NAMES = {"nothing": PAPER} | {look.name: look.colour for look in CHUNKS}

Drawing = dict[str, Any]
Cells = Sequence[tuple[int, int]]  # (rank, chunk) pairs
Places = dict[str, list[float]]


def shown(places: Places) -> dict[str, Any]:
    """The places as arrays; an empty list becomes [None], so that the legend keeps its entry.

    >>> shown({"x": [], "y": []})
    {'x': [None], 'y': [None]}
    """
    return {axis: np.array(values) if values else [None] for axis, values in places.items()}


def marks(name: str, cells: Cells, places: Places, size: float) -> Drawing:
    """A frame around each of the cells."""
    return {
        "type": "scatter", "mode": "markers", "name": name, "showlegend": True, "hoverinfo": "skip", **shown(places),
        "customdata": np.array(cells, dtype=np.int64).reshape(-1, 2),
        "marker": {"symbol": "square-open", "size": size, "color": COMMUNICATION.colour, "line": {"width": 2.5}},
    }  # fmt: skip


def fault_cells(played: Rounds, found: Round) -> Cells:
    """The place of the fault in the last picture; empty in all others."""
    fault = played.fault
    if fault is None or fault.rank is None or fault.chunk is None or found is not played.rounds[-1]:
        return []
    return [(fault.rank, fault.chunk)]


def fault_marks(played: Rounds, found: Round, places: Places) -> Drawing:
    """The mark of the fault; only the last picture shows it."""
    return marks("fault", fault_cells(played, found), places, MARK + 16) | {
        "mode": "markers+text", "text": ["<b>fault</b>"], "textposition": "bottom center",
        "showlegend": bool(played.fault),
        "marker": {"symbol": "square-open", "size": MARK + 16, "color": DROPPED, "line": {"width": 4}},
    }  # fmt: skip
