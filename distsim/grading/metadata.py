"""nbgrader's metadata of check cells, schema version 3, so that nbgrader can use the same notebooks.

Source: nbgrader 0.9, nbgraderformat/v3.json. Every check cell is a locked test, so this schema allows nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distsim import files
from distsim.errors import InputError
from distsim.extras import missing
from distsim.grading.check import Check
from distsim.grading.lab import MOST_MEGABYTES, NOTEBOOK, Lab

try:
    import nbformat
    from jsonschema import Draft7Validator
except ImportError:
    raise missing("nbformat", "a lab") from None

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "schema_version": {"const": 3},
        "grade": {"const": True},
        "solution": {"const": False},
        "locked": {"const": True},
        "task": {"const": False},
        "grade_id": {"type": "string", "pattern": "^[a-zA-Z0-9_-]+$"},
        "points": {"type": "number", "exclusiveMinimum": 0},
    },
    "required": ["schema_version", "grade", "solution", "locked", "task", "grade_id", "points"],
    "additionalProperties": False,
}


def parsed(content: bytes, source: str) -> Any:
    """A notebook from a file's content. Raises InputError about `source` if the content is not a notebook."""
    try:
        found = nbformat.reads(content.decode("utf-8"), as_version=4)
        nbformat.validate(found)
    except Exception as error:  # noqa: BLE001 - nbformat raises errors of any class
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError.of("notebook", source, f"cannot be read ({said})", "take a fresh copy") from None
    return found


def read(path: Path) -> Any:
    """Reads a notebook. Raises InputError if the file is not a notebook."""
    return parsed(files.read(path, MOST_MEGABYTES), str(path))


def write(notebook: Any, path: Path) -> None:
    """Saves a notebook."""
    nbformat.write(notebook, path)


def grade_id(lab: Lab, check: str) -> str:
    """The nbgrader id of a check, such as "lab03-bytes-on-the-wire"."""
    return f"lab{lab.number}-{check.replace('_', '-')}"


def check_cell(lab: Lab, check: Check) -> Any:
    """The check cell that a lab's notebook must have."""
    own = grade_id(lab, check.name)
    return nbformat.v4.new_code_cell(
        f'lab.check("{check.name}")', id=own, metadata={"nbgrader": locked(own, check.points)}
    )


def locked(grade_id: str, points: float) -> dict[str, Any]:
    """nbgrader's table for a check cell, which gives points and is locked."""
    return {
        "schema_version": 3, "grade": True, "solution": False, "locked": True, "task": False,
        "grade_id": grade_id, "points": int(points) if float(points).is_integer() else points,
    }  # fmt: skip


def check_sources(notebook: Any) -> dict[str, str]:
    """The source of each check cell, by nbgrader id."""
    found = {}
    for cell in notebook.cells:
        table = cell.get("metadata", {}).get("nbgrader")
        if isinstance(table, dict) and isinstance(table.get("grade_id"), str):
            found[table["grade_id"]] = cell.source.strip()
    return found


def problems(lab: Lab) -> list[str]:
    """The errors in the metadata of a lab's notebook, one sentence each."""
    notebook = read(lab.folder / NOTEBOOK)
    made = any("Notebook(" in cell.source for cell in _code(notebook)[:1])
    wrong = [] if made else [f'the first cell of code must make lab = Notebook("{lab.key}")']
    tables = [cell.metadata.nbgrader for cell in notebook.cells if "nbgrader" in cell.metadata]
    validator = Draft7Validator(SCHEMA)
    wrong += [
        f"{table.get('grade_id', 'a cell')}: {error.message}"
        for table in tables
        for error in validator.iter_errors(table)
    ]
    for check in lab.checks.values():
        own = grade_id(lab, check.name)
        cells = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == own]
        if len(cells) != 1:
            wrong.append(f"{own}: stands in {len(cells)} cells, not in one")
            continue
        if cells[0].source.strip() != check_cell(lab, check).source:
            wrong.append(f"{own}: its cell must say {check_cell(lab, check).source}")
        if cells[0].metadata.nbgrader.get("points") != check.points:
            wrong.append(f"{own}: its cell tells other points than the check's {check.points:g}")
    known = {grade_id(lab, name) for name in lab.checks}
    return wrong + [
        f"{table['grade_id']}: is no check of {lab.key}" for table in tables if table.get("grade_id") not in known
    ]


def for_grading(lab: Lab) -> Any:
    """The cells of the lab's notebook that decide points, without outputs: the first cell of code, and the checks.

    All others, such as figures and real runs, take seconds and change no result.
    """
    notebook = read(lab.folder / NOTEBOOK)
    checks = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    notebook.cells = [*_code(notebook)[:1], *checks]
    return without_outputs(notebook)


def _code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def without_outputs(notebook: Any) -> Any:
    """The same notebook, changed in place to have no outputs."""
    for cell in _code(notebook):
        cell.outputs, cell.execution_count = [], None
    notebook.metadata.pop("widgets", None)
    return notebook
