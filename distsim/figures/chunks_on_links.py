"""Collectives at work, side by side on one clock: chunks move between ranks, sums grow, NICs count their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import lcm
from typing import Any

import numpy as np

from distsim.chunk_movements import ChunkMovements
from distsim.errors import InputError
from distsim.figures import theme
from distsim.figures.animation import Animation, pace
from distsim.figures.captioned import Row
from distsim.figures.chunk_scene import HEIGHT, WIDTH, Scene
from distsim.figures.wording import counted
from distsim.units import show

MOST_RANKS, MOST_CHUNKS = 40, 64
GUTTER = 20  # pixels between the scenes of a picture in a file
STILL = 0.72  # the share of the shortest call at which the still picture is


@dataclass(frozen=True)
class ChunksOnLinks(Animation):
    """The animation of collectives. scenes: one for each call."""

    scenes: Sequence[Scene] = field(repr=False)

    NAME, TITLE, MOMENT, TABLE = "chunks_on_links", "chunks on links", "transfer", "Bytes of every link"
    LEGEND = (
        "Colours tell the chunks of the gradient apart. The level of a chunk, and its number, say how many workers' "
        "parts the rank has summed in it; a strong frame marks a complete sum. A wide line carries many bytes per "
        "second."
    )

    @property
    def chunks(self) -> int:
        """The most chunks of a scene."""
        return max(scene.calls.chunks for scene in self.scenes)

    @property
    def kind(self) -> str:
        """Colours depend on how many chunks there are."""
        return f"of-{self.chunks}"

    @property
    def colours(self) -> dict[str, str]:
        """The colour of each chunk, of lines that carry bytes, and of the two directions of links."""
        found = {"flow": theme.COMMUNICATION.colour, "up": theme.UP.colour, "down": theme.DOWN.colour}
        return found | {f"k{chunk}": colour for chunk, colour in enumerate(theme.chunk_colours(self.chunks))}

    def style(self) -> str:
        """The style sheet, with a rule for each chunk."""
        fills = "".join(f".distsim-scene .k{chunk}{{fill:var(--distsim-k{chunk})}}" for chunk in range(self.chunks))
        return super().style() + fills

    def faults(self) -> Sequence[str]:
        """What is wrong in the schedule of a call."""
        return [scene.calls.fault for scene in self.scenes if scene.calls.fault]

    def pictures(self) -> str:
        """A picture of each call."""
        return "".join(scene.svg(self.still_seconds) for scene in self.scenes)

    def content(self) -> dict[str, Any]:
        """The clock, and the content of each scene."""
        shortest = min(self.scenes, key=lambda scene: scene.calls.end_seconds or float("inf")).calls
        return {
            "end": max(scene.calls.end_seconds for scene in self.scenes),
            "still": self.still_seconds,
            "pace": pace(shortest.end_seconds, len(shortest.moments_seconds)),
            "scenes": [
                scene.content() | {"last": scene.told(scene.calls.end_seconds), "wrong": bool(scene.calls.fault)}
                for scene in self.scenes
            ],
        }

    def placed(self) -> tuple[int, int, str]:
        """All calls beside each other."""
        scenes = "".join(
            scene.svg(self.still_seconds, f'x="{place * (WIDTH + GUTTER)}" width="{WIDTH}" height="{HEIGHT}"')
            for place, scene in enumerate(self.scenes)
        )
        return WIDTH * len(self.scenes) + GUTTER * (len(self.scenes) - 1), HEIGHT, scenes


def chunks_on_links(calls: Sequence[ChunkMovements]) -> ChunksOnLinks:
    """Calls of collectives beside each other, all from 0 s on one clock. Chunks of all calls are shown equally fine.

    A chunk's colour says which one it is. Its level, and its number where there is room, say how many workers' parts
    it sums. A complete sum has a dark frame; a wrong one, with a part added twice, a dashed frame. A line is the wider
    the more bytes per second flow. Bars count each NIC's bytes, and have one scale in all scenes.

    Raises InputError where there is no call, or one has more than 40 ranks or 64 chunks.

    >>> from distsim.cluster import Cluster
    >>> from distsim.collectives import parameter_server, ring
    >>> cluster = Cluster(workers=4, bandwidth="10 Gbit/s", latency="50 us")
    >>> schedules = (ring(4), parameter_server(4))
    >>> shown = chunks_on_links([ChunkMovements.simulated(one, cluster, "64 MB") for one in schedules])
    >>> shown.summary
    "The ring ends after 77.1 ms: of its 8 links, each carries 96 MB. The parameter server ends after 410 ms: of its \
10 links, the server's carry 256 MB, and the least busy 64 MB."
    """
    if not calls:
        raise InputError.of("chunks_on_links(calls)", "[]", "there is nothing to draw", "take at least one call")
    for one in calls:
        if not (0 < one.ranks <= MOST_RANKS and 0 < one.chunks <= MOST_CHUNKS):
            what = f"{one.name}: {counted(one.ranks, 'rank')}, {counted(one.chunks, 'chunk')}"
            rule = f"must have at most {MOST_RANKS} ranks and {MOST_CHUNKS} chunks"
            raise InputError.of("chunks_on_links(calls)", what, rule, "draw a smaller call")
    finest = lcm(*(one.chunks for one in calls))
    drawn = [one.cut(finest // one.chunks) for one in calls] if finest <= MOST_CHUNKS else list(calls)
    most_bytes = max(float(column.max()) for one in drawn for column in one.bytes_per_link)
    rates = [each.num_bytes / (each.end_seconds - each.start_seconds) for one in drawn for each in one.movements]
    scenes = [Scene(one, most_bytes or 1.0, max(rates, default=0.0) or 1.0) for one in drawn]
    still = STILL * min((one.end_seconds for one in drawn if one.movements), default=0.0)
    return ChunksOnLinks(" ".join(map(_sentence, drawn)), _table(drawn), still, scenes)


def _sentence(calls: ChunkMovements) -> str:
    name = calls.name.replace("_", " ")
    if calls.fault:
        return f"The {name} is wrong."
    used = [value for value in chain(*calls.bytes_per_link) if value]
    if not used:
        return f"The {name} sends nothing."
    busiest, least = show(max(used), "byte"), show(min(used), "byte")
    those = {rank for column in calls.bytes_per_link for rank in np.flatnonzero(np.isclose(column, max(used)))}
    servers = range(calls.workers, calls.ranks)
    whose = ("the servers'" if len(servers) > 1 else "the server's") if those <= set(servers) else "the busiest"
    carried = f"each carries {busiest}" if busiest == least else f"{whose} carry {busiest}, and the least busy {least}"
    links = counted(len(used), "link")
    return f"The {name} ends after {show(calls.end_seconds, 'second')}: of its {links}, {carried}."


def _table(calls: Sequence[ChunkMovements]) -> list[Row]:
    """A row for each link, with a column for each call; None where a call has no such rank."""
    names = [one.name.replace("_", " ") for one in calls]
    columns = [f"{name}, call {place}" if names.count(name) > 1 else name for place, name in enumerate(names)]
    found: list[Row] = []
    for rank in range(max(one.ranks for one in calls)):
        kind = "rank" if rank < max(one.workers for one in calls) else "server, rank"
        for direction, words in enumerate(("up-link", "down-link")):
            row: dict[str, str | float | int | None] = {"link": f"{words} of {kind} {rank}"}
            for column, one in zip(columns, calls, strict=True):
                row[f"{column} (MB)"] = float(one.bytes_per_link[direction][rank]) / 1e6 if rank < one.ranks else None
            found.append(row)
    return found
