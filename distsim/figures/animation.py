"""A figure that moves: pictures in SVG whose parts a script moves on one clock, in one piece of HTML.

It plays in JupyterLab, on the reading site and from a file, without Python and without other files. Without scripts it
is a still picture with a table. Each kind of animation has a script and a style sheet in `browser`; `animation.js` and
`animation.css` are those that all share: the clock, its controls and the keys.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from distsim.errors import InputError
from distsim.figures import theme
from distsim.figures.captioned import Row, table_html
from distsim.files import check_writable, replaced

BROWSER = Path(__file__).parent / "browser"
SHARED = "animation"  # the name of the script and the style sheet of all animations
COLOURS = {"ink": theme.INK, "paper": theme.PAPER, "grid": theme.GRID, "axis": theme.AXIS, "lane": theme.LANE,
           "wrong": theme.DROPPED, "focus": theme.INK}  # fmt: skip
DARK = ':is([data-jp-theme-light="false"], [data-theme="dark"])'
DARK_BY_SCHEME = ':is([data-theme="auto"], .distsim-page)'
LEAST_SECONDS, SECONDS_PER_MOMENT = 6.0, 0.5  # of playing at speed 1
KEYS = "Space plays and pauses; the left and right arrow keys go from one {moment} to the next."
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>distsim: {title}</title>
<link rel="icon" href="data:,">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ margin: 0 auto; padding: 12px; max-width: 1040px; background: {paper}; color: {ink}; }}
  h1 {{ font: 600 22px {font}; }}
  @media screen and (prefers-color-scheme: dark) {{ body {{ background: {dark_paper}; color: {dark_ink}; }} }}
</style>
</head>
<body class="distsim-page">
<main><h1>{heading}</h1>
{figure}
</main>
</body>
</html>
"""


@dataclass(frozen=True)
class Animation(ABC):
    """An animation in HTML, one sentence with its finding, and a table of its numbers (rows of column -> value).

    A notebook cell that ends in an `Animation` shows all three. still_seconds: the moment of the still picture.
    """

    summary: str
    table: Sequence[Row] = field(repr=False)
    still_seconds: float

    NAME: ClassVar[str]  # of the script and the style sheet in `browser`
    TITLE: ClassVar[str]
    MOMENT: ClassVar[str]  # what a step goes to
    TABLE: ClassVar[str]  # what the table has
    LEGEND: ClassVar[str]

    @property
    @abstractmethod
    def kind(self) -> str:
        """Figures of one kind have the same colours, and so one style sheet."""

    @property
    @abstractmethod
    def colours(self) -> dict[str, str]:
        """Colours of this kind by name, of the theme; the style sheet has each as a variable, light and dark."""

    @abstractmethod
    def pictures(self) -> str:
        """The scenes at the moment of the still picture, as elements of HTML."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What the script reads, as JSON: "end" and "still" in seconds, "pace" in seconds per second of playing."""

    @abstractmethod
    def placed(self) -> tuple[int, int, str]:
        """The width and the height of the still picture, and its scenes in place, as SVG."""

    def more_controls(self) -> str:
        """Controls beside those of the clock, as HTML."""
        return ""

    def faults(self) -> Sequence[str]:
        """Sentences about what is wrong in what is shown."""
        return ()

    @property
    def name(self) -> str:
        """The class of the figure's element."""
        return f"distsim-{self.NAME.replace('_', '-')}"

    def html(self) -> str:
        """The figure as one element, with its style and its script."""
        faults = "".join(f'<p class="fault">{escape(fault)}</p>' for fault in self.faults())
        keys = KEYS.format(moment=self.MOMENT)
        content = json.dumps(self.content(), separators=(",", ":")).replace("</", "<\\/")
        return (
            f'<div class="distsim-animation {self.name} {self.kind}" role="group" '
            f'aria-label="Animation: {self.TITLE}" data-lm-suppress-shortcuts="true"><style>{self.style()}</style>'
            f'<p class="distsim-summary">{escape(self.summary)}</p>{faults}'
            f'<div class="scenes" role="group" aria-label="{keys}">{self.pictures()}</div>'
            '<div class="controls" role="group" aria-label="Playing" hidden>'
            '<button type="button" class="play">Play</button>'
            '<button type="button" class="back">Step back</button><button type="button" class="on">Step</button>'
            '<input type="range" aria-label="time" min="0" max="1000" step="1" autocomplete="off"><output></output>'
            f'<label>speed <select class="speed" autocomplete="off"></select></label>{self.more_controls()}</div>'
            f'<p class="says" role="status"></p><p class="legend">{self.LEGEND} {keys}</p>'
            "<noscript><p>The picture is still, because this browser runs no scripts.</p></noscript>"
            f'<details><summary>{self.TABLE}, as a table</summary><div class="numbers">'
            f"{table_html(self.table)}</div></details>"
            f'<script type="application/json">{content}</script>'
            f'<script type="module">{self._files(".js")}</script></div>'
        )

    def style(self) -> str:
        """The style sheet, with the theme's colours in light and in dark."""
        colours = {f"--distsim-{name}": colour for name, colour in (COLOURS | self.colours).items()}
        light = "".join(f"{name}:{colour};" for name, colour in colours.items())
        dark = "".join(f"{name}:{theme.dark(colour)};" for name, colour in colours.items())
        own = f".{self.name}.{self.kind}"
        return (
            f":is({own},.distsim-still){{--distsim-font:{theme.FONT};{light}}}{DARK} {own}{{{dark}}}"
            f"@media screen and (prefers-color-scheme: dark){{{DARK_BY_SCHEME} {own}{{{dark}}}}}"
            f"{self._files('.css')}"
        )

    def _files(self, suffix: str) -> str:
        return "".join((BROWSER / f"{name}{suffix}").read_text("utf-8") for name in (SHARED, self.NAME))

    def save(self, path: str | Path) -> None:
        """Writes a page that plays (.html), or the still picture of the scenes (.svg), by the suffix of `path`.

        Raises InputError where the suffix is another one, or the file cannot be written.
        """
        path = Path(path)
        drawn = {".html": self.page, ".svg": self.still}.get(path.suffix.lower())
        if drawn is None:
            raise InputError.of("save(path)", str(path), "must end in .html or .svg", f"name it {self.NAME}.html")
        check_writable(path)
        with replaced(path) as stream:
            stream.write(drawn().encode("utf-8"))

    def page(self) -> str:
        """The figure as an HTML page that needs no other file and no network."""
        ink, paper = COLOURS["ink"], COLOURS["paper"]
        return PAGE.format(
            figure=self.html(), font=theme.FONT, ink=ink, paper=paper, dark_ink=theme.dark(ink),
            dark_paper=theme.dark(paper), title=self.TITLE, heading=self.TITLE[0].upper() + self.TITLE[1:],
        )  # fmt: skip

    def still(self) -> str:
        """The still picture as SVG: all scenes in place."""
        width, height, scenes = self.placed()
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="distsim-still" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{escape(self.summary)}">'
            f"<style>{self.style()}</style>{scenes}</svg>\n"
        )

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"text/html": self.html(), "text/plain": self.summary}, raw=True)  # type: ignore[no-untyped-call]


def pace(end_seconds: float, moments: int) -> float:
    """How many seconds of the clock pass in a second of playing at speed 1."""
    return end_seconds / max(LEAST_SECONDS, SECONDS_PER_MOMENT * (moments - 1))
