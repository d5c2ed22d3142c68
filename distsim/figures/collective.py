"""The animation of a schedule, round by round: which chunks travel, and how many workers' parts each chunk sums.

Few ranks form a ring with an arrow for each transfer; many ranks are the rows of a matrix. The figure's frames hold the
animation, so it plays without Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from distsim.collectives import Schedule
from distsim.collectives.schedule import START
from distsim.errors import InputError
from distsim.figures import collective_matrix, collective_ring
from distsim.figures.captioned import Captioned, Row
from distsim.figures.collective_rounds import Rounds, play
from distsim.figures.theme import SMALL, template
from distsim.figures.wording import counted

MOST_FRAMES = 400
MOST_CELLS = 2_000_000  # in all frames of a matrix together
ROUND_MILLISECONDS = 900


def collective(schedule: Schedule) -> Captioned:
    """The rounds of a schedule as an animation and as a table; a wrong schedule is drawn up to its fault.

    The fault is the error that `Schedule.check` raises. The last picture marks the fault, and the sentence names it.
    Rounds count from 0. Each picture shows the transfers of a round, and the chunks of each rank after the round.

    Raises InputError where there is no rank or no chunk, or the start or the end names an unknown rank or chunk.

    >>> from distsim.collectives import ring
    >>> shown = collective(ring(4))
    >>> [frame.name for frame in shown.figure.frames][:3], len(shown.figure.frames)
    (['start', 'round 0', 'round 1'], 7)
    >>> shown.summary
    'ring, 4 ranks: 24 transfers in 6 rounds. No rank sends more than 6 chunks; the whole data are 4 chunks. All ranks \
end complete.'
    """
    if schedule.ranks < 1 or schedule.chunks < 1:
        what = (schedule.ranks, schedule.chunks)
        raise InputError.of("collective(ranks, chunks)", what, "there is nothing to draw", "take at least one of each")
    in_ring = collective_ring.fits(schedule)
    most = MOST_FRAMES if in_ring else max(2, min(MOST_FRAMES, MOST_CELLS // (schedule.ranks * schedule.chunks)))
    played = play(schedule, most)
    drawer = collective_ring if in_ring else collective_matrix
    pictures = [drawer.picture(played, found) for found in played.rounds]
    titles = [found.title for found in played.rounds]
    frames = [
        {"name": title, "traces": list(changes), "data": list(changes.values())}
        for title, changes in zip(titles, map(drawer.changes, pictures), strict=True)
    ]
    first = len(frames) - 1 if played.fault else 0
    layout = drawer.layout(played) | _controls(titles, first, below=0.06 if in_ring else 0.14)
    layout |= {"template": template(), "margin": {"t": 50, "b": 110 if in_ring else 130, "l": 10, "r": 10}}
    # Built at once: plotly validates a figure again at each change.
    return Captioned(go.Figure(pictures[first], layout, frames), _sentence(played), _table(played))


def _controls(titles: Sequence[str], active: int, below: float) -> dict[str, Any]:
    """Play, pause, and a slider over the rounds. below: distance under the picture, as a share of its height."""
    shown = {"frame": {"duration": ROUND_MILLISECONDS, "redraw": True}, "transition": {"duration": 0}}
    at_once = {"frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}, "mode": "immediate"}
    buttons = [
        {"label": "Play", "method": "animate", "args": [None, shown | {"fromcurrent": not active}]},
        {"label": "Pause", "method": "animate", "args": [[None], at_once]},
    ]
    return {
        "updatemenus": [
            {
                "type": "buttons", "direction": "left", "buttons": buttons, "showactive": False,
                "x": 0.0, "xanchor": "left", "y": -below, "yanchor": "top", "pad": {"t": 6},
            }
        ],
        "sliders": [
            {
                "active": active, "x": 0.28, "len": 0.72, "y": -below, "yanchor": "top", "pad": {"t": 0},
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
    }  # fmt: skip


def _sentence(played: Rounds) -> str:
    schedule = played.schedule
    if played.fault is not None:
        fault = played.fault
        place = "" if fault.rank is None else f", at rank {fault.rank} in chunk {fault.chunk}"
        when = "at the start" if fault.round == START else f"in round {fault.round}"
        return f"{schedule.name}, {counted(schedule.ranks, 'rank')}, is wrong {when}{place}: {fault}"
    ranks = counted(schedule.ranks, "rank")
    transfers = sum(map(len, schedule.rounds))
    if not transfers:
        return f"{schedule.name}, {ranks}: nothing is sent, and each rank has what it wants."
    most = int(schedule.sent_chunks.max())
    drawn = len(played.rounds) - 1
    part = "" if drawn == len(schedule.rounds) else f" The figure shows the first {counted(drawn, 'round')}."
    rounds = counted(len(schedule.rounds), "round")
    return (
        f"{schedule.name}, {ranks}: {counted(transfers, 'transfer')} in {rounds}. "
        f"No rank sends more than {counted(most, 'chunk')}; the whole data are {counted(schedule.chunks, 'chunk')}. "
        f"All ranks end complete.{part}"
    )


def _table(played: Rounds) -> list[Row]:
    return [
        {
            "shown": found.title,
            "transfers": 0 if found.number == START else len(played.schedule.rounds[found.number]),
            "chunks sent": sum(transfer.chunks for transfer in found.transfers),
            "complete, of those wanted": played.complete(found),
            "wanted": int(played.schedule.wanted.sum()),
        }
        for found in played.rounds
    ]
