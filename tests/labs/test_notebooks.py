"""A lab's notebook runs from top to bottom for who has done the lab, and for who has not begun."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from distsim.grading.lab import NOTEBOOK, TASKS, Lab, all_labs

LABS = Path(__file__).parents[2] / "labs"
KEYS = [lab.key for lab in all_labs(LABS)]
FIRST, *OTHERS = KEYS
MOST_BYTES = 100_000
CELL_SECONDS = 120


def run_all(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs every cell, also those that grading leaves out. Its exit status is that of pytest: 0 where none raised."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder),
        "-c", os.devnull, "--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={CELL_SECONDS}", NOTEBOOK,
    ]  # fmt: skip
    paths = os.pathsep.join([str(LABS.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        command, cwd=folder, env=environment | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tasks", ["solution.py", "tasks.py"])
@pytest.mark.parametrize("key", [FIRST, *(pytest.param(key, marks=pytest.mark.thorough) for key in OTHERS)])
def test_all_cells_run(key: str, tasks: str, tmp_path: Path) -> None:
    lab, folder = Lab.at(LABS / key), tmp_path / key
    folder.mkdir()
    for path in lab.pristine:
        shutil.copy(path, folder)
    shutil.copy(lab.folder / tasks, folder / TASKS)
    done = run_all(folder)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


@pytest.mark.parametrize("key", KEYS)
def test_a_notebook_is_small_in_order_and_asks_before_it_tells(key: str) -> None:
    path = LABS / key / NOTEBOOK
    notebook = nbformat.read(path, as_version=4)
    assert path.stat().st_size < MOST_BYTES
    assert "widgets" not in notebook.metadata
    assert notebook.metadata.kernelspec.name == "python3"
    headings = [
        len(line) - len(line.lstrip("#"))
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("#")
    ]
    assert headings.count(1) == 1
    assert headings[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(headings))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code)
    guesses = [number for number, cell in enumerate(code) if "lab.guess(" in cell.source]
    shown = [number for number, cell in enumerate(code) if "formula =" in cell.source or "simulate(" in cell.source]
    assert guesses[0] < min(shown)
    assert any("lab.overlay(" in cell.source for cell in code)
