"""The cells of exercises as nbgrader reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nbformat
import pytest

from distsim.course import Exercise, cells, exercise, number


@pytest.fixture
def one() -> Exercise:
    return exercise(points=2, hint="h")(effective_batch)


def effective_batch(answer: object) -> Any:
    return number(answer, right=32)


@pytest.fixture
def notebook(one: Exercise) -> Any:
    made = [cells.answer_cell("02", one.name, "effective_batch = ..."), cells.check_cell("02", one)]
    return nbformat.v4.new_notebook(cells=made)


def test_the_cells_of_an_exercise(notebook: Any, one: Exercise) -> None:
    answer, check = notebook.cells
    assert check.source == 'chapter.check("effective_batch", effective_batch)'
    assert check.metadata.nbgrader == {
        "schema_version": 3, "grade": True, "solution": False, "locked": True, "task": False,
        "grade_id": "ch02-effective-batch", "points": 2,
    }  # fmt: skip
    assert answer.metadata.nbgrader == {
        "schema_version": 3, "grade": False, "solution": True, "locked": False, "task": False,
        "grade_id": "ch02-effective-batch-answer",
    }  # fmt: skip
    assert cells.problems(notebook, "02", {one.name: one}) == []


def changing(place: int, key: str, value: object) -> Callable[[Any], None]:
    return lambda notebook: notebook.cells[place].metadata.nbgrader.__setitem__(key, value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changing(1, "points", 3), "tells other points than the exercise's 2"),
        (changing(1, "locked", False), "True was expected"),
        (changing(0, "locked", True), "False was expected"),
        (changing(0, "checksum", "0"), "Additional properties are not allowed"),
        (changing(0, "grade_id", "ch02-another"), "the cells of exercises are"),
        (lambda notebook: notebook.cells.reverse(), "the cells of exercises are"),
        (lambda notebook: notebook.cells.pop(), "the cells of exercises are"),
        (lambda notebook: notebook.cells[1].__setitem__("source", "2.0"), "its cell must say"),
    ],
)
def test_what_nbgrader_would_not_take_is_told(
    notebook: Any, one: Exercise, change: Callable[[Any], None], words: str
) -> None:
    change(notebook)
    told = cells.problems(notebook, "02", {one.name: one})
    assert any(words in problem for problem in told), told
