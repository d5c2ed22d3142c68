"""The page of all explorers: a picture, a title and a question of each, drawn from the table `EXPLORERS`.

A picture and its text are part of the explorer's notebook, in the notebook's metadata: JupyterLab keeps these when a
reader runs and saves the notebook.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from distsim.explorers.catalogue import EXPLORERS, Entry
from distsim.figures.captioned import Captioned
from distsim.figures.export import pictures

KEY = "distsim"  # of a notebook's metadata
SIZE, SCALE = (640, 400), 0.75  # of the drawing in pixels; the picture is smaller
STYLE = """<style>
.distsim-cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(15em, 1fr)); gap: 1.2em; padding: 0; }
.distsim-cards > li { list-style: none; margin: 0; }
.distsim-cards a { font-weight: 600; }
.distsim-cards img {
  display: block; width: 100%; aspect-ratio: 8 / 5; object-fit: cover; background: white; margin-bottom: 0.4em;
  border: 1px solid #8888; border-radius: 6px;
}
.distsim-cards p { margin: 0.2em 0; }
</style>"""


def thumbnails(firsts: Sequence[Captioned]) -> list[dict[str, str]]:
    """For each explorer's first figure, the metadata of its notebook: the picture as PNG in base64, and its text.

    Raises InputError where no Chromium is installed.
    """
    drawn = [_bare(captioned) for captioned in firsts]
    found = pictures(drawn, Path("thumbnail.png"), SIZE, SCALE)
    return [
        {"thumbnail": base64.b64encode(picture).decode(), "alt": captioned.summary}
        for picture, captioned in zip(found, firsts, strict=True)
    ]


class Index:
    """The page as HTML. folder: of the notebooks. suffix: of the pages to which it links."""

    def __init__(self, folder: Path = Path(), suffix: str = ".ipynb") -> None:
        self.folder, self.suffix = folder, suffix

    def html(self) -> str:
        """A list of cards.

        >>> Index(Path("nowhere")).html().count('<a href="backup_workers.ipynb">Synchronous or backup workers?</a>')
        1
        """
        cards = "".join(self._card(entry) for entry in EXPLORERS.values())
        return f'{STYLE}<ul class="distsim-cards">{cards}</ul>'

    def _repr_html_(self) -> str:
        return self.html()

    def _card(self, entry: Entry) -> str:
        """The picture, the title as a link, and the question. A notebook without a picture has none here."""
        held = self._held(entry)
        alt = escape(held.get("alt", ""), quote=True)
        picture = f'<img src="data:image/png;base64,{held["thumbnail"]}" alt="{alt}">' if held else ""
        link = f'<a href="{entry.name}{self.suffix}">{escape(entry.title)}</a>'
        return f"<li>{picture}{link}<p>{escape(entry.question)}</p></li>"

    def _held(self, entry: Entry) -> dict[str, str]:
        path = self.folder / f"{entry.name}.ipynb"
        notebook: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        held: dict[str, str] = notebook.get("metadata", {}).get(KEY, {})
        return held


def _bare(captioned: Captioned) -> Any:
    """The figure as high as a thumbnail, without a legend."""
    figure = type(captioned.figure)(captioned.figure)
    figure.update_layout(height=SIZE[1], width=SIZE[0], showlegend=False, margin={"t": 30, "b": 50})
    return figure
