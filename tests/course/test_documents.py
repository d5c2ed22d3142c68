"""The course's notebooks as documents: what nbval compares is there, and nothing is stored that should not be."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

COURSE = Path(__file__).parents[2] / "course"
NOTEBOOKS = sorted(COURSE.glob("*.ipynb"))
MARKER = "# NBVAL_CHECK_OUTPUT"


def test_there_are_notebooks() -> None:
    assert [path.name for path in NOTEBOOKS] == ["00_tour.ipynb"]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def notebook(path: Path) -> nbformat.NotebookNode:
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    return found


def test_marked_cells_hold_what_they_are_compared_with(notebook: nbformat.NotebookNode) -> None:
    marked = [cell for cell in notebook.cells if cell.cell_type == "code" and MARKER in cell.source]
    assert marked
    for cell in marked:
        assert cell.source.splitlines()[0] == MARKER, "a marker that does not stand on a line of its own is ignored"
        assert cell.execution_count is not None
        assert cell.outputs


def test_cells_were_run_from_top_to_bottom(notebook: nbformat.NotebookNode) -> None:
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert not any(
        output.output_type == "error" or output.get("name") == "stderr"
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )


def test_nothing_is_stored_that_should_not_be(path: Path, notebook: nbformat.NotebookNode) -> None:
    assert "widgets" not in notebook.metadata
    assert notebook.metadata.kernelspec.name == "python3"
    assert path.stat().st_size < 300_000
    text = path.read_text("utf-8")
    assert "widget-view+json" not in text
    assert not re.search(r"/(home|root|tmp|Users)/", text)


def test_headings_are_in_order_and_the_question_comes_before_any_number(notebook: nbformat.NotebookNode) -> None:
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert "?" in notebook.cells[0].source


def test_no_shell_commands(notebook: nbformat.NotebookNode) -> None:
    """A `!command` that fails passes unseen."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not re.search(r"^\s*[!%]", cell.source, re.MULTILINE)
