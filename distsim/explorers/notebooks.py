"""The explorers' notebooks, each with a question and one cell, and a page that links to them.

`python -m distsim.explorers.notebooks course/explorers` writes them all. Each is saved with the explorer's first
figure as a plain figure, without the state of widgets, so a reader without a kernel sees a figure.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat

from distsim.explorers.catalogue import EXPLORERS, Entry

INDEX = "index"
SETTLE_SECONDS = 600.0
METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"},
    "language_info": {"name": "python"},
}
HOW = (
    "Guess before you move anything. Tab leads from control to control, and the arrow keys move one; "
    "the line above the figure tells what changed."
)


def notebook(entry: Entry) -> Any:
    """The notebook of one explorer, without output.

    >>> notebook(EXPLORERS["backup_workers"]).cells[0].source.splitlines()[0]
    '# What does it buy not to wait for the slowest workers, and what is wasted?'
    """
    code = f"from distsim.explorers.{entry.name} import explorer\n\nexplorer()"
    return _notebook(
        nbformat.v4.new_markdown_cell(f"# {entry.question}\n\n{HOW}", id="question"),
        nbformat.v4.new_code_cell(code, id="explorer", execution_count=1),
    )


def index() -> Any:
    """The page that links to all notebooks."""
    lines = [f"* [{entry.title}]({entry.name}.ipynb) {entry.question}" for entry in EXPLORERS.values()]
    text = "# Which question do you have?\n\n" + "\n".join(lines)
    return _notebook(nbformat.v4.new_markdown_cell(text, id="explorers"))


def write(folder: Path) -> None:
    """Writes all notebooks, each with the first figure of its explorer, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in EXPLORERS.values():
        made = notebook(entry)
        made.cells[1].outputs = _first_outputs(entry)
        nbformat.write(made, folder / f"{entry.name}.ipynb")
    nbformat.write(index(), folder / f"{INDEX}.ipynb")


def _first_outputs(entry: Entry) -> list[Any]:
    view = entry.open()
    view.settled(SETTLE_SECONDS)
    if view.shown is None:
        return []
    caption = {"text/html": view.shown.caption_html(), "text/plain": view.shown.summary}
    return [nbformat.v4.new_output("display_data", data) for data in (view.shown.bundle(), caption)]


def _notebook(*cells: Any) -> Any:
    return nbformat.v4.new_notebook(cells=list(cells), metadata=METADATA)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
