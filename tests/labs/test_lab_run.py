"""`distsim lab run NN` as it is typed: all of it for who has done the lab, and what there is for who has begun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from distsim.grading.lab import TASKS, Lab, all_labs

LABS = Path(__file__).parents[2] / "labs"
STANDING_FOR_ALL = ("03_ring", "07_asynchronous")  # one among peers, one with a server

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.more]


def lab_run(lab: Lab, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "distsim", "lab", "run", lab.number, "--folder", str(folder), "--labs", str(LABS)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "lab",
    [pytest.param(lab, marks=() if lab.key in STANDING_FOR_ALL else pytest.mark.thorough) for lab in all_labs(LABS)],
    ids=lambda lab: lab.key,
)
def test_a_solution_runs_and_every_rank_has_a_row(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / TASKS).write_bytes((lab.folder / "solution.py").read_bytes())
    done = lab_run(lab, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sum(line.startswith("│") for line in done.stdout.splitlines()) == lab.about.ranks
    assert "still to be written" not in done.stdout


def test_what_is_written_runs_and_the_rest_is_named(tmp_path: Path) -> None:
    lab = Lab.at(LABS / "03_ring")
    text = (lab.folder / "solution.py").read_text()
    body = text[text.index("def server_all_reduce") : text.index("def ring_bytes")]
    without = text.replace(
        body, 'def server_all_reduce(tensor):\n    raise NotImplementedError("write server_all_reduce")\n\n\n'
    )
    (tmp_path / TASKS).write_text(without)
    done = lab_run(lab, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ring all reduce" in done.stdout
    assert "server all reduce" not in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "still to be written" in line]
    assert line.split("(")[0].split() == ["still", "to", "be", "written:", "server_all_reduce"]


@pytest.mark.parametrize("key", ["01_processes", "07_asynchronous"])
def test_where_nothing_can_be_run_yet_each_function_is_named(key: str, tmp_path: Path) -> None:
    lab = Lab.at(LABS / key)
    (tmp_path / TASKS).write_bytes((lab.folder / TASKS).read_bytes())
    done = lab_run(lab, tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "there is nothing to run yet\n  still to be written: " in done.stderr
    assert "Traceback" not in done.stderr
