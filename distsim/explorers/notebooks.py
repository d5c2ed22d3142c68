"""The explorers' notebooks, each with a question and one cell, and a page of thumbnails that links to them.

`python -m distsim.explorers.notebooks` writes them all into course/explorers; with names of explorers, theirs alone.
Each is saved with the explorer's first figure as a plain figure, without the state of widgets, so a reader without a
kernel sees a figure.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat

from distsim.explorers.catalogue import EXPLORERS, Entry
from distsim.explorers.thumbnails import KEY, thumbnails
from distsim.material import home

INDEX = "index"
METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"},
    "language_info": {"name": "python"},
}
RUN = "*In JupyterLab, click the cell below, and press Shift+Enter: it {}.*"
HOW = (
    "Guess before you move anything. Tab leads from control to control, and the arrow keys move one; "
    "the line above the figure tells what changed."
)


def notebook(entry: Entry) -> Any:
    """The notebook of one explorer, without output.

    >>> notebook(EXPLORERS["backup_workers"]).cells[0].source.splitlines()[0]
    '# What is gained by not waiting for the slowest workers, and what is wasted?'
    """
    code = f"from distsim.explorers.{entry.name} import explorer\n\nexplorer()"
    return _notebook(
        nbformat.v4.new_markdown_cell(
            f"# {entry.question}\n\n{RUN.format('brings the figure to life')}\n\n{HOW}", id="question"
        ),
        nbformat.v4.new_code_cell(code, id="explorer", execution_count=1),
    )


def index() -> Any:
    """The page of all explorers: its one cell draws it from the table, so it holds no explorer itself."""
    code = "from distsim.explorers.thumbnails import Index\n\nIndex()"
    return _notebook(
        nbformat.v4.new_markdown_cell(
            f"# Which question do you have?\n\n{RUN.format('shows the explorers')}", id="how"
        ),
        nbformat.v4.new_code_cell(code, id="explorers"),
    )


def write(folder: Path, names: Iterable[str] = EXPLORERS) -> None:
    """Writes notebooks, each with the first figure of its explorer and a thumbnail of it, and the index into `folder`.

    Raises InputError where no Chromium is installed, which draws the thumbnails, and KeyError for an unknown name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries = [EXPLORERS[name] for name in names]
    firsts = [entry.explore({}) for entry in entries]
    for entry, first, thumbnail in zip(entries, firsts, thumbnails(firsts), strict=True):
        made = notebook(entry)
        made.metadata[KEY] = thumbnail
        caption = {"text/html": first.caption_html(), "text/plain": first.summary}
        made.cells[1].outputs = [nbformat.v4.new_output("display_data", data) for data in (first.bundle(), caption)]
        nbformat.write(made, folder / f"{entry.name}.ipynb")
    nbformat.write(index(), folder / f"{INDEX}.ipynb")


def _notebook(*cells: Any) -> Any:
    return nbformat.v4.new_notebook(cells=list(cells), metadata=METADATA)


if __name__ == "__main__":
    write(home() / "course" / "explorers", sys.argv[1:] or EXPLORERS)
