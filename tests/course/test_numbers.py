"""Numbers in prose equal what the chapter's cells compute, in a kernel that has just executed it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import nbformat
import pytest

from distsim.course import notebooks
from tests.course.prose import Marked, marked_numbers, unmarked_decimals

COURSE = Path(__file__).parents[2] / "course"
CHAPTERS = sorted(COURSE.glob("[0-9][0-9]*_*.ipynb"))
MOST_SECONDS = 90.0


def test_what_is_marked_and_what_is_not() -> None:
    text = "About 1,250<!-- =steps --> steps of 16.2 ms<!-- =1e3 * x[0] -->, and -3<!-- = y --> %, in 2016."
    assert marked_numbers(text) == [Marked("1,250", "steps"), Marked("16.2", "1e3 * x[0]"), Marked("-3", "y")]
    with pytest.raises(ValueError, match="no number stands before"):
        marked_numbers("some<!-- =steps --> steps")


@pytest.mark.parametrize(
    ("written", "value", "fits"),
    [("16.2", 16.2499, True), ("16.2", 16.2501, False), ("16", 16.4, True), ("1,250", 1250.0, True),
     ("1250", 1250.0, True), ("-0.5", -0.46, True), ("0.5", -0.5, False)],
)  # fmt: skip
def test_a_number_is_rounded_as_it_is_written(written: str, value: float, fits: bool) -> None:
    assert Marked(written, "x").fits(value) is fits


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_a_cell_prints_is_marked_in_the_prose(path: Path) -> None:
    """Of numbers that nobody meets by chance; those of a scenario (`cv = 0.3`) are given and not computed."""
    notebook = nbformat.read(path, as_version=4)
    printed = "".join(
        str(output.get("text", "")) for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output
    )
    computed = set(re.findall(r"(?<!= )(?<![\d.])\d+\.\d+(?![\d.])", printed))
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert not unmarked_decimals(text) & computed


@pytest.mark.real
@pytest.mark.thorough
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_numbers_in_prose_are_those_of_the_cells(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    marked = marked_numbers(text)
    assert marked
    for _ in range(2):
        start = time.perf_counter()
        values = notebooks.values(notebook, [one.expression for one in marked], COURSE)
        if (seconds := time.perf_counter() - start) < MOST_SECONDS:
            break
    assert seconds < MOST_SECONDS, f"twice, the second time {seconds:.0f} s"
    wrong = {f"{one.written}<!-- ={one.expression} -->": values[one.expression] for one in marked}
    assert all(one.fits(values[one.expression]) for one in marked), wrong
