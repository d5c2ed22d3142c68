"""The extension that Sphinx loads: it prepares pages, renders equations, and adds plotly to pages with figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distsim.course.site import equations, films
from distsim.course.site.moving import MOVING
from distsim.course.site.pages import EXPLORERS, FOLDER, menu
from distsim.course.site.reading import FIGURE, for_reading
from distsim.explorers.thumbnails import Index
from distsim.figures.catalogue import markdown
from distsim.figures.theme import SCROLLING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

TABLE = "<!-- the table of figures -->"  # the table goes here in a page
SCRIPTS, MOVES = ("plotly.min.js", "figures.js"), "explorer.js"
MOVING_FOLDER = "distsim_moving"  # our setting of Sphinx: the folder with the HTML of each explorer that moves


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects the extension; Sphinx calls this."""
    app.add_config_value(MOVING_FOLDER, "", "env", str)
    app.add_html_math_renderer("mathml", (equations.inline, None), (equations.block, None))
    app.connect("source-read", _read)
    app.connect("html-page-context", _scripts)
    app.connect("html-page-context", _level_of_captions, priority=900)  # after the theme has made its menu
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    below = menu(Path(app.srcdir), page)
    notebook = app.env.doc2path(page).suffix == ".ipynb"
    if notebook:
        index = Index(Path(app.srcdir) / FOLDER, ".html").html() if page == EXPLORERS else ""
        source[0] = for_reading(page, source[0], below, partial(_moving, Path(app.config[MOVING_FOLDER])), index)
    else:
        source[0] = films.moving(source[0].replace(TABLE, markdown())) + below


def _moving(folder: Path, explorer: str) -> str:
    """The HTML of the explorer that moves; "" for one that has no page."""
    path = folder / f"{explorer}.html"
    return path.read_text("utf-8") if path.exists() else ""


def _scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:  # noqa: ARG001
    body = context.get("body", "")
    scripts = (*SCRIPTS, MOVES) if f'class="{MOVING}"' in body else SCRIPTS if f'class="{FIGURE}"' in body else ()
    for file in (*scripts, SCROLLING.name):
        app.add_js_file(file, loading_method="defer")


def _level_of_captions(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:  # noqa: ARG001
    """A heading needs a level; Sphinx gives captions of menus none."""
    if "furo_navigation_tree" in context:
        tree = context["furo_navigation_tree"]
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
