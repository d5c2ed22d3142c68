"""The cells of an exercise in nbgrader's format: the cell for the answer, and the cell that checks the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nbformat
from jsonschema import Draft7Validator

from distsim.course.exercise import Exercise
from distsim.grading.metadata import SCHEMA, locked

SOLUTION = {
    "type": "object",
    "properties": SCHEMA["properties"]
    | {"grade": {"const": False}, "solution": {"const": True}, "locked": {"const": False}},
    "required": [name for name in SCHEMA["required"] if name != "points"],
    "additionalProperties": False,
}
GUESS = "guess"  # tag of a cell for a guess


def grade_id(number: str, name: str) -> str:
    """An exercise's name in its chapter's notebook.

    >>> grade_id("02", "effective_batch")
    'ch02-effective-batch'
    """
    return f"ch{number}-{name.replace('_', '-')}"


def check_cell(number: str, exercise: Exercise) -> Any:
    """The cell that checks the answer, a variable with the exercise's name."""
    own = grade_id(number, exercise.name)
    return nbformat.v4.new_code_cell(
        f'chapter.check("{exercise.name}", {exercise.name})', id=own,
        metadata={"nbgrader": locked(own, exercise.points)},
    )  # fmt: skip


def answer_cell(number: str, name: str, source: str) -> Any:
    """The cell for the answer; `source` is its text before the student answers."""
    own = f"{grade_id(number, name)}-answer"
    table = {"schema_version": 3, "grade": False, "solution": True, "locked": False, "task": False, "grade_id": own}
    return nbformat.v4.new_code_cell(source, id=own, metadata={"nbgrader": table})


def problems(notebook: Any, number: str, exercises: Mapping[str, Exercise]) -> list[str]:
    """The faults in the cells of a chapter's exercises, a sentence each; empty where there are none."""
    cells = {cell.metadata.nbgrader.get("grade_id"): cell for cell in notebook.cells if "nbgrader" in cell.metadata}
    order = [cell.metadata.nbgrader.get("grade_id") for cell in notebook.cells if "nbgrader" in cell.metadata]
    expected = [one for name in exercises for one in (f"{grade_id(number, name)}-answer", grade_id(number, name))]
    wrong = [] if order == expected else [f"the cells of exercises are {order}, and not {expected}"]
    for name, exercise in exercises.items():
        own = grade_id(number, name)
        for key, schema in ((own, SCHEMA), (f"{own}-answer", SOLUTION)):
            if key in cells:
                found = Draft7Validator(schema).iter_errors(cells[key].metadata.nbgrader)
                wrong += [f"{key}: {error.message}" for error in found]
        if own in cells:
            if cells[own].source != check_cell(number, exercise).source:
                wrong.append(f"{own}: its cell must say {check_cell(number, exercise).source}")
            if cells[own].metadata.nbgrader.get("points") != exercise.points:
                wrong.append(f"{own}: its cell tells other points than the exercise's {exercise.points:g}")
    return wrong
