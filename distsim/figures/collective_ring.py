"""The picture of a schedule among few ranks: workers in a ring, servers in the middle, an arrow for each transfer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from distsim.arrays import Floats
from distsim.collectives import Schedule, Transfer
from distsim.figures.collective_marks import MARK, NAMES, Cells, Drawing, Places, fault_cells, fault_marks, marks, shown
from distsim.figures.collective_rounds import Round, Rounds
from distsim.figures.theme import AXIS, COMMUNICATION, INK, SMALL

MOST_WORKERS = 8  # the same limit holds for chunks, which are drawn as squares
MOST_SERVERS = 4  # in the middle of the ring
SQUARE = 29.0  # distance between two squares, in pixels of the drawing
MOST_COLUMNS = 4
RADII = np.array([350.0, 190.0])
SERVER_RADII = np.array([105.0, 62.0])  # of the circle of several servers


def fits(schedule: Schedule) -> bool:
    """Whether a schedule has few enough ranks and chunks for this picture.

    >>> from distsim.collectives import ring
    >>> fits(ring(8)), fits(ring(9))
    (True, False)
    """
    return schedule.workers <= MOST_WORKERS >= schedule.chunks and schedule.servers <= MOST_SERVERS


def picture(played: Rounds, found: Round) -> list[Drawing]:
    """The picture of one round: arrows with their chunks, squares by state, new chunks, and the fault."""
    schedule, counts = played.schedule, found.counts
    complete = counts == played.parts
    states = [counts == 0, (counts > 0) & ~complete, (counts > 0) & complete]
    drawn = _arrows(schedule, found.transfers)
    for (name, colour), state in zip(NAMES.items(), states, strict=True):
        cells = [(int(rank), int(chunk)) for rank, chunk in np.argwhere(state)]
        drawn.append(
            {
                "type": "scatter", "mode": "markers+text", "name": name, "showlegend": True,
                **shown(_squares(schedule, cells)),
                "marker": {
                    "symbol": "square", "size": MARK, "color": colour,
                    "line": {"color": INK, "width": 2.2 if name == "complete" else 0.8},
                },
                "text": ["" if name == "nothing" else str(counts[cell]) for cell in cells],
                "textfont": {"color": INK, "size": SMALL + 1},
                "hovertext": [_told(played, found, *cell) for cell in cells],
                "hovertemplate": "%{hovertext}<extra></extra>",
            }
        )  # fmt: skip
    new, fault = found.arrived, fault_cells(played, found)
    drawn.append(marks("new in this round", new, _squares(schedule, new), MARK + 8))
    drawn.append(fault_marks(played, found, _squares(schedule, fault)))
    return drawn


def changes(drawings: Sequence[Drawing]) -> dict[int, Drawing]:
    """The drawings that a frame replaces in the picture, by their numbers: all of them."""
    return dict(enumerate(drawings))


def layout(played: Rounds) -> dict[str, Any]:
    """A box with a name around each rank's chunks, and no axes."""
    schedule = played.schedule
    half = _half_box(schedule)
    centres = [(float(x), float(y)) for x, y in _centres(schedule)]
    width, height = (RADII + half + [14, 24]).tolist()
    return {
        "shapes": [
            {
                "type": "rect", "x0": x - half[0], "x1": x + half[0], "y0": y - half[1], "y1": y + half[1],
                "line": {"color": AXIS, "width": 1}, "layer": "below",
            }
            for x, y in centres
        ],
        "annotations": [
            {
                "text": f"{'server' if rank >= schedule.workers else 'rank'} {rank}", "x": x, "y": y + half[1],
                "yanchor": "bottom", "showarrow": False, "font": {"size": SMALL},
            }
            for rank, (x, y) in enumerate(centres)
        ],
        "xaxis": {"visible": False, "fixedrange": True, "range": [-width, width]},
        "yaxis": {"visible": False, "fixedrange": True, "range": [-height, height]},
        "height": 2 * height + 160,
        "meta": {"leastWidth": 2 * width * MARK / SQUARE},  # in pixels, so that a rank's squares do not overlap
    }  # fmt: skip


def _centres(schedule: Schedule) -> Floats:
    """The place of each rank: workers clockwise from the top, servers in the middle; shape (ranks, 2)."""
    angles = 2 * np.pi * np.arange(schedule.workers) / schedule.workers
    ring = RADII * np.column_stack([np.sin(angles), np.cos(angles)])
    tilted = np.radians(60) + 2 * np.pi * np.arange(schedule.servers) / max(schedule.servers, 1)
    middle = SERVER_RADII * np.column_stack([np.sin(tilted), np.cos(tilted)])
    return np.concatenate([ring, middle if schedule.servers > 1 else np.zeros_like(middle)])


def _rows_and_columns(schedule: Schedule) -> tuple[int, int]:
    """Rows and columns of a rank's chunks, which fill row by row from the upper left."""
    columns = min(schedule.chunks, MOST_COLUMNS)
    return -(-schedule.chunks // columns), columns


def _half_box(schedule: Schedule) -> Floats:
    """Half the width and height of the box around a rank's chunks."""
    rows, columns = _rows_and_columns(schedule)
    return SQUARE / 2 * np.array([columns, rows]) + 6


def _squares(schedule: Schedule, cells: Cells) -> Places:
    """The places of the squares of (rank, chunk) pairs."""
    centres = _centres(schedule)
    rows, columns = _rows_and_columns(schedule)
    left, top = -(columns - 1) / 2, (rows - 1) / 2
    return {
        "x": [float(centres[rank, 0] + SQUARE * (left + chunk % columns)) for rank, chunk in cells],
        "y": [float(centres[rank, 1] + SQUARE * (top - chunk // columns)) for rank, chunk in cells],
    }


def _arrows(schedule: Schedule, transfers: Sequence[Transfer]) -> list[Drawing]:
    """One arrow per transfer between two ranks' boxes, labelled with its chunks."""
    centres = _centres(schedule)
    half = _half_box(schedule) + 2
    x: list[float | None] = []
    y: list[float | None] = []
    packets, texts, told = [], [], []
    on_same_way: Counter[tuple[int, int]] = Counter()
    for transfer in transfers:
        source, target = centres[transfer.source], centres[transfer.target]
        path = target - source
        length = float(np.hypot(*path))
        aside = 6.0 * np.array([-path[1], path[0]]) / length  # so that two opposite arrows do not overlap
        out = float(np.min(half / np.maximum(np.abs(path), 1e-9)))  # the share of the path inside either box
        begin, end = source + min(out, 0.45) * path + aside, target - min(out, 0.45) * path + aside
        x += [float(begin[0]), float(end[0]), None]
        y += [float(begin[1]), float(end[1]), None]
        packets.append(begin + (0.42 + 0.13 * on_same_way[transfer.source, transfer.target]) * (end - begin))
        on_same_way[transfer.source, transfer.target] += 1
        last = transfer.chunk + transfer.chunks - 1
        texts.append(str(transfer.chunk) if transfer.chunks == 1 else f"{transfer.chunk}–{last}")
        verb = "added to" if transfer.reduce else "copied to"
        told.append(f"chunk {texts[-1]} of rank {transfer.source}, {verb} rank {transfer.target}'s")
    on_line = {"symbol": "arrow", "angleref": "previous", "size": [0, 15, 0] * len(transfers), "color": INK}
    return [
        {
            "type": "scatter", "mode": "lines+markers", "name": "transfer", "showlegend": False, "hoverinfo": "skip",
            "x": x, "y": y, "line": {"color": INK, "width": 1.6}, "marker": on_line,
        },
        {
            "type": "scatter", "mode": "markers+text", "name": "chunk on its way", "showlegend": True,
            **shown({"x": [float(at[0]) for at in packets], "y": [float(at[1]) for at in packets]}),
            "text": texts, "textfont": {"color": INK, "size": SMALL},
            "hovertext": told, "hovertemplate": "%{hovertext}<extra></extra>",
            "marker": {
                "symbol": "circle", "size": [16 if len(text) < 3 else 26 for text in texts] or 16,
                "color": COMMUNICATION.colour, "line": {"color": INK, "width": 0.8},
            },
        },
    ]  # fmt: skip


def _told(played: Rounds, found: Round, rank: int, chunk: int) -> str:
    return f"rank {rank}, chunk {chunk}: {found.counts[rank, chunk]} of {played.parts[chunk]} workers' parts"
