"""A notebook in the form that the site shows: the page draws the figures, and a line says where to run it.

A figure saved as plotly's JSON becomes an element that holds this JSON; `static/figures.js` draws the figure. Screen
readers, and browsers without scripts, give the figure's sentence instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape
from typing import Any

import nbformat

from distsim.course.site.pages import FOLDER
from distsim.figures.captioned import PLOTLY_MIME
from distsim.figures.theme import config

FIGURE = "distsim-figure"  # the class of an element that holds a figure
NO_CODE = "remove-input"  # a cell's tag for MyST-NB
SHOWS_EXPLORER = re.compile(r"^from distsim\.explorers\.(\w+) import explorer$", re.MULTILINE)
HOW = {
    "course": "Here a chapter is read, with outputs of our run; its explorer has the main controls. `distsim course` "
    "opens the chapter to guess, run and answer, and its explorer with all controls.",
    "labs": "Here a lab is read. `distsim lab start` copies it, with the file that you write, to where you work on it.",
}


def for_reading(
    page: str, source: str, menu: str, explorer: Callable[[str], str] = lambda _: "", index: str = ""
) -> str:
    """The text of a notebook for the site.

    menu: Markdown to add at its end. explorer: the HTML of the explorer with this name that moves, or "". It takes the
    place of the cell that shows the explorer. index: HTML that takes the place of a cell.
    On the page of an explorer, and on the index of explorers, that HTML below the heading is all there is.
    """
    notebook = nbformat.reads(source, as_version=4)
    alone = page.startswith(FOLDER)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shown = SHOWS_EXPLORER.search(cell.source)
            moving = explorer(shown[1]) if shown else index
            if moving:
                cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": moving})]
                cell.metadata = nbformat.from_dict({"tags": [NO_CODE]})
        elif alone:
            cell.source = cell.source.partition("\n")[0]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for output in cell.outputs:
                if PLOTLY_MIME in output.get("data", {}):
                    output.data = _drawn(output.data)
    if notebook.cells and notebook.cells[0].cell_type == "markdown" and not alone:
        notebook.cells[0].source = _with_how(notebook.cells[0].source, page)
    if menu:
        notebook.cells.append(nbformat.v4.new_markdown_cell(menu, id="menu"))
    return str(nbformat.writes(notebook))


def figure_html(figure: dict[str, Any], sentence: str) -> str:
    """The element in which a page draws the figure.

    >>> figure_html({"data": [], "layout": {"title": "</script>"}}, "Nothing happens.").partition(">")[2]
    '<script type="application/json">{"data": [], "layout": {"title": "<\\\\/script>"}}</script></div>'
    """
    content = json.dumps(figure).replace("</", "<\\/")
    label = escape(sentence, quote=True)
    return (
        f'<div class="{FIGURE}" role="figure" tabindex="0" aria-label="{label}">'
        f'<script type="application/json">{content}</script></div>'
    )


def _drawn(data: dict[str, Any]) -> Any:
    sentence = "".join(data.get("text/plain", ""))
    return nbformat.from_dict({"text/html": figure_html(data[PLOTLY_MIME] | {"config": config()}, sentence)})


def _with_how(source: str, page: str) -> str:
    """The first cell with a line below the heading: where to run the notebook."""
    heading, _, rest = source.partition("\n")
    how = next(text for folder, text in HOW.items() if page.startswith(f"{folder}/"))
    return f"{heading}\n\n*{how}*\n{rest}"
