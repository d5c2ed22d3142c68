"""Check cells as nbgrader reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from distsim.grading import metadata
from distsim.grading.lab import Lab


def test_the_cell_of_a_check(lab: Lab) -> None:
    cell = metadata.check_cell(lab, lab.checks["the_counter_counts"])
    assert cell.source == 'lab.check("the_counter_counts")'
    assert cell.metadata == {
        "nbgrader": {
            "schema_version": 3, "grade": True, "solution": False, "locked": True, "task": False,
            "grade_id": "lab90-the-counter-counts", "points": 2,
        }
    }  # fmt: skip


def test_a_right_notebook_has_no_problems(lab: Lab) -> None:
    assert metadata.problems(lab) == []


def changing(key: str, value: object) -> Callable[[Any], None]:
    return lambda notebook: notebook.cells[-1].metadata.nbgrader.__setitem__(key, value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changing("schema_version", 2), "3 was expected"),
        (changing("solution", True), "False was expected"),
        (changing("grade_id", "the counter"), "does not match"),
        (changing("grade_id", "lab90-another"), "is no check of 90_sum"),
        (changing("points", 3), "tells other points than the check's 2"),
        (changing("checksum", "0" * 32), "Additional properties are not allowed"),
        (lambda notebook: notebook.cells[-1].metadata.nbgrader.pop("task"), "'task' is a required property"),
        (lambda notebook: notebook.cells.pop(), "stands in 0 cells"),
        (lambda notebook: notebook.cells[-1].__setitem__("source", "2.0"), "its cell must say"),
        (lambda notebook: notebook.cells.pop(1), 'the first cell of code must make lab = Notebook("90_sum")'),
    ],
)
def test_what_nbgrader_would_not_take_is_told(lab: Lab, change: Callable[[Any], None], words: str) -> None:
    notebook = metadata.read(lab.folder / "lab.ipynb")
    change(notebook)
    metadata.write(notebook, lab.folder / "lab.ipynb")
    assert any(words in problem for problem in metadata.problems(lab)), metadata.problems(lab)


def test_grading_runs_the_first_cell_and_the_checks_without_outputs(lab: Lab) -> None:
    first, *checks = metadata.for_grading(lab).cells
    assert first.source.endswith('lab = Notebook("90_sum")')
    assert [cell.source for cell in checks] == [f'lab.check("{name}")' for name in lab.checks]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in (first, *checks))
