"""The picture of a schedule among many ranks: a matrix, coloured by the share of parts that each chunk sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.figures.collective_marks import NAMES, Cells, Drawing, Places, fault_cells, fault_marks, marks, shown
from distsim.figures.collective_rounds import Counts, Round, Rounds
from distsim.figures.theme import INK, SHARE_OF_SUM, SMALL

MOST_NUMBERS = 600  # a matrix of more cells shows colours without numbers
MOST_ARRIVED = 512  # if more cells are new, none is marked
CHANGING = ("type", "name", "z", "text", "x", "y", "customdata")  # the keys that differ between rounds


def layout(played: Rounds) -> dict[str, Any]:
    """Axes: chunks to the right, ranks down."""
    ranks, chunks = played.rounds[0].counts.shape
    few = {"tickvals": list(range(chunks))} if chunks <= 4 else {"dtick": _apart(chunks)}
    return {
        "xaxis": {"title": {"text": "chunk"}, "range": [-0.5, chunks - 0.5], "showgrid": False, **few},
        "yaxis": {
            "title": {"text": "rank"}, "range": [ranks - 0.5, -0.5], "showgrid": False,
            "dtick": _apart(ranks),
        },
        "height": 660,
    }  # fmt: skip


def picture(played: Rounds, found: Round) -> list[Drawing]:
    """The picture of one round."""
    counts = found.counts
    few = counts.size <= MOST_NUMBERS
    cells: Drawing = {
        "type": "heatmap", "name": "chunks", "z": _percent(counts, played.parts), "zmin": 0, "zmax": 100,
        "colorscale": SHARE_OF_SUM, "xgap": 1 if few else 0, "ygap": 1 if few else 0, "textfont": {"color": INK},
        "hovertemplate": "rank %{y}, chunk %{x}: %{z} % of the workers' parts<extra></extra>",
        "colorbar": {
            "title": {"text": "workers' parts<br>summed", "font": {"size": SMALL + 1}}, "ticksuffix": " %",
            "thickness": 14,
        },
        **({"text": counts, "texttemplate": "%{text}"} if few else {}),
    }  # fmt: skip
    legend = [
        {
            "type": "scatter", "mode": "markers", "name": name, "showlegend": True, **shown({"x": [], "y": []}),
            "marker": {"symbol": "square", "size": 12, "color": NAMES[name], "line": {"color": INK, "width": 0.8}},
        }
        for name in ("nothing", "complete")
    ]  # fmt: skip
    arrived = found.arrived if len(found.arrived) <= MOST_ARRIVED else []
    size = max(4.0, min(20.0, 440.0 / max(counts.shape)))
    new = marks("new in this round", arrived, _places(arrived), size)
    new["marker"] |= {"color": INK, "line": {"width": 2 if size > 8 else 1}}
    return [cells, *legend, new, fault_marks(played, found, _places(fault_cells(played, found)))]


def changes(drawings: list[Drawing]) -> dict[int, Drawing]:
    """The drawings that a frame replaces in the picture, by their numbers.

    >>> changes([{"type": "scatter", "name": "complete", "x": [None]}, {"type": "heatmap", "name": "chunks", "z": 1}])
    {1: {'type': 'heatmap', 'name': 'chunks', 'z': 1}}
    """
    return {
        place: {key: value for key, value in drawing.items() if key in CHANGING}
        for place, drawing in enumerate(drawings)
        if drawing["name"] not in NAMES and drawing.get("showlegend", True)  # leaves out an absent fault
    }


def _apart(count: int) -> int:
    """The distance between two numbered ranks or chunks."""
    return 1 if count <= 32 else 8 if count <= 128 else 32


def _percent(counts: Counts, parts: Counts) -> NDArray[np.uint8]:
    """Whole percents, which keep the page small. 0 means that no part is held; 100 means that all parts are summed."""
    percent = np.ceil(100.0 * counts / np.maximum(parts, 1))
    return np.where(counts < parts, np.minimum(percent, 99), 100 * (counts > 0)).astype(np.uint8)


def _places(cells: Cells) -> Places:
    return {"x": [float(chunk) for _, chunk in cells], "y": [float(rank) for rank, _ in cells]}
