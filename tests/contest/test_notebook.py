"""The lab's notebook runs as a student runs it, in a copy of the lab; so does the entry that it begins with."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

from distsim import material
from distsim.contest.problem import contest_folder

FOLDER = contest_folder()


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(300)
def test_all_cells_run(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "lab")
    notebook = nbformat.read(tmp_path / "lab" / "lab.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path / "lab"}}).execute()
    told = "".join(str(output.get("text", "")) for cell in notebook.cells for output in cell.get("outputs", ()))
    assert "measured: an update in" in told
    assert " first " in told  # the table of the race
    figures = [
        cell for cell in notebook.cells if any("text/html" in one.get("data", {}) for one in cell.get("outputs", ()))
    ]
    assert len(figures) == 3


def test_learners_get_the_problem_and_no_entry_of_the_tests() -> None:
    shipped = {path.as_posix() for path in material.files(material.home()) if "15_contest" in path.parts}
    names = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert shipped == {f"labs/15_contest/{name}" for name in names}
    assert {"contest.toml", "scenario.toml", "lab.ipynb", "my_entries/first/entry.toml"} < names


def test_the_notebook_states_the_problem_that_is_given() -> None:
    text = (FOLDER / "lab.ipynb").read_text("utf-8")
    scenario = (FOLDER / "scenario.toml").read_text("utf-8")
    for said, written in [
        ("Eight workers", "workers = 8"), ("100 ms on average", 'mean = "100 ms"'), ("variation of 0.4", "cv = 0.4"),
        ("Worker 2 always takes twice", "slow = { 2 = 2.0 }"), ("1 Gbit/s", 'bandwidth = "1 Gbit/s"'),
        ("NIC carries only 200 Mbit/s", '5 = { up = "200 Mbit/s", down = "200 Mbit/s" }'),
        ("2 MB", 'gradient = "2 MB"'),
        ("500 ms longer, with a probability of 2 %", 'pauses = { probability = 0.02, duration = "500 ms" }'),
    ]:  # fmt: skip
        assert said in text
        assert written in scenario
    rules = (FOLDER / "contest.toml").read_text("utf-8")
    assert "target = 0.3\n" in rules
    assert "most_hosts = 9\n" in rules
