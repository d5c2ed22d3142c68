"""Collectives at work, side by side on one clock: chunks move between ranks, sums grow, and each NIC counts its bytes.

The figure is SVG and a small script in one piece of HTML. It plays in JupyterLab, on the reading site and from a file,
without Python and without other files; without scripts it is a still picture with a table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import chain
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np

from distsim.chunk_movements import ChunkMovements
from distsim.errors import InputError
from distsim.figures import theme
from distsim.figures.captioned import Row, table_html
from distsim.figures.chunk_scene import HEIGHT, WIDTH, Scene
from distsim.figures.wording import counted
from distsim.files import check_writable, replaced
from distsim.units import show

BROWSER = Path(__file__).parent / "browser"
SCRIPT, STYLE = BROWSER / "chunks_on_links.js", BROWSER / "chunks_on_links.css"
COLOURS = {
    "ink": theme.INK, "paper": theme.PAPER, "grid": theme.GRID, "axis": theme.AXIS, "lane": theme.LANE,
    "flow": theme.COMMUNICATION.colour, "up": theme.UP.colour, "down": theme.DOWN.colour, "wrong": theme.DROPPED,
    "focus": theme.INK,
}  # fmt: skip
DARK = ':is([data-jp-theme-light="false"], [data-theme="dark"])'
DARK_BY_SCHEME = ':is([data-theme="auto"], .distsim-page)'
MOST_RANKS, MOST_CHUNKS = 40, 64
GUTTER = 20  # pixels between the scenes of a picture in a file
STILL = 0.72  # the share of the shortest call at which the still picture is
LEAST_SECONDS, SECONDS_PER_MOMENT = 6.0, 0.5  # of playing the shortest call at speed 1
LEGEND = (
    "Colours tell the chunks of the gradient apart. The level of a chunk, and its number, say how many workers' parts "
    "the rank has summed in it; a strong frame marks a complete sum. A wide line carries many bytes per second."
)
KEYS = "Space plays and pauses; the left and right arrow keys go from one transfer to the next."
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>distsim: chunks on links</title>
<link rel="icon" href="data:,">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ margin: 0 auto; padding: 12px; max-width: 1040px; background: {paper}; color: {ink}; }}
  h1 {{ font: 600 22px {font}; }}
  @media screen and (prefers-color-scheme: dark) {{ body {{ background: {dark_paper}; color: {dark_ink}; }} }}
</style>
</head>
<body class="distsim-page">
<main><h1>Chunks on links</h1>
{figure}
</main>
</body>
</html>
"""


@dataclass(frozen=True)
class Animation:
    """An animation in HTML, one sentence with its finding, and a table of its numbers (rows of column -> value).

    A notebook cell that ends in an `Animation` shows all three. scenes: one for each call. still_seconds: the moment
    of the still picture.
    """

    scenes: Sequence[Scene] = field(repr=False)
    summary: str
    table: Sequence[Row]
    still_seconds: float

    def html(self) -> str:
        """The figure as one element, with its style and its script."""
        pictures = "".join(scene.svg(self.still_seconds) for scene in self.scenes)
        faults = "".join(f'<p class="fault">{escape(one.calls.fault)}</p>' for one in self.scenes if one.calls.fault)
        content = json.dumps(self.content(), separators=(",", ":")).replace("</", "<\\/")
        return (
            f'<div class="distsim-chunks of-{self.chunks}" role="group" aria-label="Animation of collectives" '
            f'data-lm-suppress-shortcuts="true"><style>{self.style()}</style>'
            f'<p class="distsim-summary">{escape(self.summary)}</p>{faults}'
            f'<div class="scenes" role="group" aria-label="{KEYS}">{pictures}</div>'
            '<div class="controls" role="group" aria-label="Playing" hidden>'
            '<button type="button" class="play">Play</button>'
            '<button type="button" class="back">Step back</button><button type="button" class="on">Step</button>'
            '<input type="range" aria-label="time" min="0" max="1000" step="1" autocomplete="off"><output></output>'
            '<label>speed <select autocomplete="off"></select></label></div>'
            f'<p class="says" role="status"></p><p class="legend">{LEGEND} {KEYS}</p>'
            "<noscript><p>The picture is still, because this browser runs no scripts.</p></noscript>"
            f'<details><summary>Bytes of every link, as a table</summary><div class="numbers">'
            f"{table_html(self.table)}</div></details>"
            f'<script type="application/json">{content}</script>'
            f'<script type="module">{SCRIPT.read_text("utf-8")}</script></div>'
        )

    def content(self) -> dict[str, Any]:
        """What the script reads, as JSON."""
        ends = [scene.calls.end_seconds for scene in self.scenes]
        shortest = min(self.scenes, key=lambda scene: scene.calls.end_seconds or float("inf")).calls
        played = max(LEAST_SECONDS, SECONDS_PER_MOMENT * (len(shortest.moments_seconds) - 1))
        return {
            "end": max(ends),
            "still": self.still_seconds,
            "pace": shortest.end_seconds / played,
            "scenes": [
                scene.content() | {"last": scene.told(scene.calls.end_seconds), "wrong": bool(scene.calls.fault)}
                for scene in self.scenes
            ],
        }

    @property
    def chunks(self) -> int:
        """The most chunks of a scene."""
        return max(scene.calls.chunks for scene in self.scenes)

    def style(self) -> str:
        """The style sheet, with the theme's colours in light and in dark.

        Figures of one page share the sheet, except for the colours of chunks, which depend on how many there are.
        """
        colours = {f"--chunk-{name}": colour for name, colour in COLOURS.items()}
        colours |= {f"--k{chunk}": colour for chunk, colour in enumerate(theme.chunk_colours(self.chunks))}
        light = "".join(f"{name}:{colour};" for name, colour in colours.items())
        dark = "".join(f"{name}:{theme.dark(colour)};" for name, colour in colours.items())
        fills = "".join(f".distsim-scene .k{chunk}{{fill:var(--k{chunk})}}" for chunk in range(self.chunks))
        own = f".distsim-chunks.of-{self.chunks}"
        return (
            f":is({own},.distsim-still){{--chunk-font:{theme.FONT};{light}}}{DARK} {own}{{{dark}}}"
            f"@media screen and (prefers-color-scheme: dark){{{DARK_BY_SCHEME} {own}{{{dark}}}}}"
            f"{fills}{STYLE.read_text('utf-8')}"
        )

    def save(self, path: str | Path) -> None:
        """Writes a page that plays (.html), or the still picture of the scenes (.svg), by the suffix of `path`.

        Raises InputError where the suffix is another one, or the file cannot be written.
        """
        path = Path(path)
        drawn = {".html": self.page, ".svg": self.still}.get(path.suffix.lower())
        if drawn is None:
            raise InputError.of("save(path)", str(path), "must end in .html or .svg", "name it chunks.html")
        check_writable(path)
        with replaced(path) as stream:
            stream.write(drawn().encode("utf-8"))

    def page(self) -> str:
        """The figure as an HTML page that needs no other file and no network."""
        ink, paper = COLOURS["ink"], COLOURS["paper"]
        return PAGE.format(
            figure=self.html(), font=theme.FONT, ink=ink, paper=paper, dark_ink=theme.dark(ink),
            dark_paper=theme.dark(paper),
        )  # fmt: skip

    def still(self) -> str:
        """The still picture as SVG: all scenes beside each other."""
        scenes = "".join(
            scene.svg(self.still_seconds).replace(
                "<svg ", f'<svg x="{place * (WIDTH + GUTTER)}" width="{WIDTH}" height="{HEIGHT}" ', 1
            )
            for place, scene in enumerate(self.scenes)
        )
        width = WIDTH * len(self.scenes) + GUTTER * (len(self.scenes) - 1)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="distsim-still" viewBox="0 0 {width} {HEIGHT}" '
            f'width="{width}" height="{HEIGHT}" role="img" aria-label="{escape(self.summary)}">'
            f"<style>{self.style()}</style>{scenes}</svg>\n"
        )

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"text/html": self.html(), "text/plain": self.summary}, raw=True)  # type: ignore[no-untyped-call]


def chunks_on_links(calls: Sequence[ChunkMovements]) -> Animation:
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
    return Animation(scenes, " ".join(map(_sentence, drawn)), _table(drawn), still)


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
