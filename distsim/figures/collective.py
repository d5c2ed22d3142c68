"""A schedule at work: chunks travel round by round, and every rank's chunks show how many workers they sum.

Few ranks stand in a ring, servers in its middle, with arrows for what travels; many are the rows of a matrix. The
animation lies in the figure's frames: it plays, pauses and slides without Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from distsim.collectives import Schedule, Transfer
from distsim.collectives.schedule import START
from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.rounds import Counts, Round, Rounds, play
from distsim.figures.theme import APPLY, COMMUNICATION, COMPUTE, DROPPED, INK, PAPER, SMALL, template

MOST_IN_RING = 8  # workers, and chunks, that are drawn as squares
MOST_SERVERS = 4  # in its middle
MOST_FRAMES = 400
MOST_CELLS = 2_000_000  # of all frames of a matrix
MOST_NUMBERS = 600  # cells of a matrix with a number in each
MOST_ARRIVED = 512  # cells of a matrix that are marked as new
SQUARE, MARK = 29.0, 22  # a square's place in pixels of the drawing, and its size on the screen
MOST_COLUMNS = 4
RADII = np.array([350.0, 190.0])
SERVER_RADII = np.array([105.0, 62.0])  # of several servers
ROUND_MILLISECONDS = 900
NAMES = {"nothing": PAPER, "some workers' parts": COMPUTE.colour, "complete": APPLY.colour}
SCALE = [[0.0, PAPER], [1e-6, "#d9eef9"], [1 - 1e-6, COMPUTE.colour], [1.0, APPLY.colour]]


def collective(schedule: Schedule) -> Captioned:
    """The rounds of a schedule as an animation, with the rounds as a table; a wrong one is drawn up to its fault.

    The fault is the one that `Schedule.check` finds: it is marked in the last picture, and the sentence tells it.
    Rounds count from 0, as everywhere; each picture shows a round's transfers and what is held after it.

    Raises InputError where there are no ranks or no chunks, or the start or the end names one that there is not.

    >>> from distsim.collectives import ring
    >>> shown = collective(ring(4))
    >>> [frame.name for frame in shown.figure.frames][:3], len(shown.figure.frames)
    (['start', 'round 0', 'round 1'], 7)
    >>> shown.summary
    'ring, 4 ranks: 24 transfers in 6 rounds; no rank sends more than 1.5 gradients, and all end complete.'
    """
    if schedule.ranks < 1 or schedule.chunks < 1:
        what = (schedule.ranks, schedule.chunks)
        raise InputError.of("collective(ranks, chunks)", what, "there is nothing to draw", "take at least one of each")
    in_ring = schedule.workers <= MOST_IN_RING >= schedule.chunks and schedule.servers <= MOST_SERVERS
    most = MOST_FRAMES if in_ring else max(2, min(MOST_FRAMES, MOST_CELLS // (schedule.ranks * schedule.chunks)))
    played = play(schedule, most)
    pictures = [_ring(played, found) if in_ring else _matrix(played, found) for found in played.rounds]
    frames = [
        go.Frame(name=found.title, data=data, traces=list(range(len(data))))
        for found, data in zip(played.rounds, pictures, strict=True)
    ]
    last = pictures[-1] if played.fault else pictures[0]
    figure = go.Figure(data=last, frames=frames)
    figure.update_layout(template=template(), margin={"t": 50, "b": 110, "l": 10, "r": 10})
    (_lay_out_ring if in_ring else _lay_out_matrix)(figure, played)
    _add_controls(figure, [found.title for found in played.rounds], len(frames) - 1 if played.fault else 0)
    return Captioned(figure, _sentence(played), _table(played))


def _centres(schedule: Schedule) -> NDArray[np.float64]:
    """Where each rank's chunks stand: workers clockwise from the top, servers in the middle; shape (ranks, 2)."""
    angles = 2 * np.pi * np.arange(schedule.workers) / schedule.workers
    ring = RADII * np.column_stack([np.sin(angles), np.cos(angles)])
    tilted = np.radians(60) + 2 * np.pi * np.arange(schedule.servers) / max(schedule.servers, 1)
    middle = SERVER_RADII * np.column_stack([np.sin(tilted), np.cos(tilted)])
    return np.concatenate([ring, middle if schedule.servers > 1 else np.zeros_like(middle)])


def _rows_and_columns(schedule: Schedule) -> tuple[int, int]:
    """How the chunks of a rank stand: row by row from the upper left."""
    columns = min(schedule.chunks, MOST_COLUMNS)
    return -(-schedule.chunks // columns), columns


def _half_box(schedule: Schedule) -> NDArray[np.float64]:
    """Half the width and height of the box around a rank's chunks."""
    rows, columns = _rows_and_columns(schedule)
    return SQUARE / 2 * np.array([columns, rows]) + 6


def _squares(schedule: Schedule, cells: Sequence[tuple[int, int]]) -> dict[str, list[float]]:
    """Where the squares of (rank, chunk) pairs stand."""
    centres = _centres(schedule)
    rows, columns = _rows_and_columns(schedule)
    left, top = -(columns - 1) / 2, (rows - 1) / 2
    return {
        "x": [float(centres[rank, 0] + SQUARE * (left + chunk % columns)) for rank, chunk in cells],
        "y": [float(centres[rank, 1] + SQUARE * (top - chunk // columns)) for rank, chunk in cells],
    }


def _ring(played: Rounds, found: Round) -> list[go.Scatter]:
    """The picture of one round: arrows with what they carry, squares by state, those that are new, the fault."""
    schedule, counts = played.schedule, found.counts
    complete = counts == played.parts
    states = [counts == 0, (counts > 0) & ~complete, (counts > 0) & complete]
    drawn = _arrows(schedule, found.transfers)
    for (name, colour), state in zip(NAMES.items(), states, strict=True):
        cells = [(int(rank), int(chunk)) for rank, chunk in np.argwhere(state)]
        drawn.append(
            go.Scatter(
                **_shown(_squares(schedule, cells)), mode="markers+text", name=name, showlegend=True,
                marker={
                    "symbol": "square", "size": MARK, "color": colour,
                    "line": {"color": INK, "width": 2.2 if name == "complete" else 0.8},
                },
                text=["" if name == "nothing" else str(counts[cell]) for cell in cells],
                textfont={"color": INK, "size": SMALL + 1},
                hovertext=[_told(played, found, *cell) for cell in cells], hovertemplate="%{hovertext}<extra></extra>",
            )
        )  # fmt: skip
    drawn.append(_marks("new in this round", found.arrived, _squares(schedule, found.arrived), "square-open", MARK + 8))
    drawn.append(_fault_marks(played, found, _squares(schedule, _fault_cells(played, found))))
    return drawn


def _arrows(schedule: Schedule, transfers: Sequence[Transfer]) -> list[go.Scatter]:
    """One arrow per transfer between the edges of two ranks' boxes, and on it the chunks that it carries."""
    centres = _centres(schedule)
    half = _half_box(schedule) + 2
    x: list[float | None] = []
    y: list[float | None] = []
    packets, texts, told = [], [], []
    on_same_way: Counter[tuple[int, int]] = Counter()
    for transfer in transfers:
        source, target = centres[transfer.source], centres[transfer.target]
        way = target - source
        length = float(np.hypot(*way))
        aside = 6.0 * np.array([-way[1], way[0]]) / length  # two that meet pass each other
        out = float(np.min(half / np.maximum(np.abs(way), 1e-9)))  # the share of the way inside either box
        begin, end = source + min(out, 0.45) * way + aside, target - min(out, 0.45) * way + aside
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
        go.Scatter(
            x=x, y=y, mode="lines+markers", name="transfer", showlegend=False, hoverinfo="skip",
            line={"color": INK, "width": 1.6}, marker=on_line,
        ),
        go.Scatter(
            **_shown({"x": [float(at[0]) for at in packets], "y": [float(at[1]) for at in packets]}),
            mode="markers+text", name="chunk on its way", showlegend=True, text=texts,
            textfont={"color": INK, "size": SMALL}, hovertext=told, hovertemplate="%{hovertext}<extra></extra>",
            marker={
                "symbol": "circle", "size": [16 if len(text) < 3 else 26 for text in texts] or 16,
                "color": COMMUNICATION.colour, "line": {"color": INK, "width": 0.8},
            },
        ),
    ]  # fmt: skip


def _marks(
    name: str, cells: Sequence[tuple[int, int]], places: dict[str, list[float]], symbol: str, size: float
) -> go.Scatter:
    return go.Scatter(
        **_shown(places), mode="markers", name=name, showlegend=True, hoverinfo="skip",
        customdata=list(map(list, cells)),
        marker={"symbol": symbol, "size": size, "color": COMMUNICATION.colour, "line": {"width": 2.5}},
    )  # fmt: skip


def _fault_cells(played: Rounds, found: Round) -> list[tuple[int, int]]:
    fault = played.fault
    if fault is None or fault.rank is None or fault.chunk is None or found is not played.rounds[-1]:
        return []
    return [(fault.rank, fault.chunk)]


def _fault_marks(played: Rounds, found: Round, places: dict[str, list[float]]) -> go.Scatter:
    mark = _marks("fault", _fault_cells(played, found), places, "square-open", MARK + 16)
    mark.update(mode="markers+text", text=["<b>fault</b>"], textposition="bottom center", showlegend=bool(played.fault))
    mark.marker.update(color=DROPPED, line_width=4)
    return mark


def _shown(places: dict[str, list[float]]) -> dict[str, list[float | None]]:
    """The places; where there are none, one that is nowhere, so that the legend keeps its entry."""
    return {axis: list(values) or [None] for axis, values in places.items()}


def _told(played: Rounds, found: Round, rank: int, chunk: int) -> str:
    return f"rank {rank}, chunk {chunk}: {found.counts[rank, chunk]} of {played.parts[chunk]} workers' parts"


def _lay_out_ring(figure: go.Figure, played: Rounds) -> None:
    schedule = played.schedule
    half = _half_box(schedule)
    for rank, (x, y) in enumerate(_centres(schedule)):
        corners = {"x0": x - half[0], "x1": x + half[0], "y0": y - half[1], "y1": y + half[1]}
        figure.add_shape(type="rect", **corners, line={"color": "#777777", "width": 1}, layer="below")
        figure.add_annotation(
            text=f"{'server' if rank >= schedule.workers else 'rank'} {rank}", x=x, y=y + half[1], yanchor="bottom",
            showarrow=False, font_size=SMALL,
        )  # fmt: skip
    reach = RADII + half + [14, 24]
    figure.update_xaxes(visible=False, fixedrange=True, range=[-reach[0], reach[0]])
    figure.update_yaxes(visible=False, fixedrange=True, range=[-reach[1], reach[1]])
    figure.update_layout(height=2 * reach[1] + 160)


def _matrix(played: Rounds, found: Round) -> list[go.Heatmap | go.Scatter]:
    """The picture of one round: rows are ranks, columns chunks."""
    counts = found.counts
    drawn = go.Heatmap(
        z=_percent(counts, played.parts), zmin=0, zmax=100, colorscale=SCALE,
        xgap=1 if counts.size <= MOST_NUMBERS else 0, ygap=1 if counts.size <= MOST_NUMBERS else 0,
        text=counts if counts.size <= MOST_NUMBERS else None, texttemplate="%{text}", textfont={"color": INK},
        hovertemplate="rank %{y}, chunk %{x}: %{z} % of the workers' parts<extra></extra>",
        colorbar={"title": {"text": "workers' parts<br>summed"}, "ticksuffix": " %", "thickness": 14},
    )  # fmt: skip
    arrived = found.arrived if len(found.arrived) <= MOST_ARRIVED else []
    size = max(4.0, min(20.0, 440.0 / max(counts.shape)))
    marks = _marks("new in this round", arrived, _cells(arrived), "square-open", size)
    marks.marker.color, marks.marker.line.width = INK, 2 if size > 8 else 1
    legend = [
        go.Scatter(
            x=[None], y=[None], mode="markers", name=name, showlegend=True,
            marker={"symbol": "square", "size": 12, "color": NAMES[name], "line": {"color": INK, "width": 0.8}},
        )
        for name in ("nothing", "complete")
    ]  # fmt: skip
    return [drawn, *legend, marks, _fault_marks(played, found, _cells(_fault_cells(played, found)))]


def _percent(counts: Counts, parts: Counts) -> NDArray[np.uint8]:
    """In whole numbers, to keep the page small: 0 is nothing at all, and 100 is complete and no less."""
    percent = np.ceil(100.0 * counts / np.maximum(parts, 1))
    return np.where(counts < parts, np.minimum(percent, 99), 100 * (counts > 0)).astype(np.uint8)


def _cells(cells: Sequence[tuple[int, int]]) -> dict[str, list[float]]:
    return {"x": [float(chunk) for _, chunk in cells], "y": [float(rank) for rank, _ in cells]}


def _lay_out_matrix(figure: go.Figure, played: Rounds) -> None:
    ranks, chunks = played.rounds[0].counts.shape
    figure.update_xaxes(title_text="chunk", range=[-0.5, chunks - 0.5], showgrid=False, dtick=1 if chunks <= 32 else 32)
    figure.update_yaxes(title_text="rank", range=[ranks - 0.5, -0.5], showgrid=False, dtick=1 if ranks <= 32 else 32)
    if chunks <= 4:
        figure.update_xaxes(tickvals=list(range(chunks)), dtick=None)
    figure.update_layout(height=660, margin_b=130)


def _add_controls(figure: go.Figure, titles: Sequence[str], active: int) -> None:
    """Play, pause, and a slider over the rounds."""
    shown = {"frame": {"duration": ROUND_MILLISECONDS, "redraw": True}, "transition": {"duration": 0}}
    at_once = {"frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}, "mode": "immediate"}
    buttons = [
        {"label": "Play", "method": "animate", "args": [None, shown | {"fromcurrent": not active}]},
        {"label": "Pause", "method": "animate", "args": [[None], at_once]},
    ]
    below = -0.06 if figure.layout.xaxis.visible is False else -0.14
    figure.update_layout(
        updatemenus=[
            {
                "type": "buttons", "direction": "left", "buttons": buttons, "showactive": False,
                "x": 0.0, "xanchor": "left", "y": below, "yanchor": "top", "pad": {"t": 6},
            }
        ],
        sliders=[
            {
                "active": active, "x": 0.17, "len": 0.83, "y": below, "yanchor": "top", "pad": {"t": 0},
                "currentvalue": {"prefix": "round: ", "xanchor": "left", "font": {"size": SMALL + 1}},
                "steps": [
                    {
                        "label": title.removeprefix("round "), "value": title, "method": "animate",
                        "args": [[title], at_once],
                    }
                    for title in titles
                ],
            }
        ],
    )  # fmt: skip


def _sentence(played: Rounds) -> str:
    schedule = played.schedule
    if played.fault is not None:
        fault = played.fault
        place = "" if fault.rank is None else f", at rank {fault.rank} in chunk {fault.chunk}"
        when = "at the start" if fault.round == START else f"in round {fault.round}"
        return f"{schedule.name}, {schedule.ranks} ranks, is wrong {when}{place}: {fault}"
    ranks = f"{schedule.ranks} rank{'s' if schedule.ranks != 1 else ''}"
    transfers = sum(map(len, schedule.rounds))
    if not transfers:
        return f"{schedule.name}, {ranks}: nothing is sent, and all hold what they want."
    most = float(schedule.sent_chunks.max()) / schedule.chunks
    drawn = len(played.rounds) - 1
    part = "" if drawn == len(schedule.rounds) else f" Drawn: {drawn} of the rounds."
    rounds = f"{len(schedule.rounds)} round{'s' if len(schedule.rounds) != 1 else ''}"
    return (
        f"{schedule.name}, {ranks}: {transfers} transfer{'s' if transfers != 1 else ''} in {rounds}; "
        f"no rank sends more than {most:.3g} gradient{'s' if most != 1 else ''}, and all end complete.{part}"
    )


def _table(played: Rounds) -> list[Row]:
    return [
        {
            "shown": found.title,
            "transfers": 0 if found.number == START else len(played.schedule.rounds[found.number]),
            "chunks sent": sum(transfer.chunks for transfer in found.transfers),
            "complete, of those wanted": played.complete(found),
            "wanted": int(played.wanted.sum()),
        }
        for found in played.rounds
    ]
