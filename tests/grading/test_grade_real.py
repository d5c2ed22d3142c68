"""A class graded by the command, interrupted and called again: right points, clear words, nothing lost or left."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from distsim.errors import RunError
from distsim.grading import metadata, notebook_run
from distsim.grading.grade import grade
from distsim.grading.lab import Lab
from distsim.grading.notebook_run import NotebookRun
from distsim.grading.submission import Submission
from tests.grading.conftest import LABS, SUM

pytestmark = [pytest.mark.real, pytest.mark.timeout(900), pytest.mark.more]

SOLUTION = (SUM / "solution.py").read_bytes()
STUB = (SUM / "tasks.py").read_bytes()
LATIN = b"# -*- coding: latin-1 -*-\nstreet = 'Stra\xdfe'\n" + SOLUTION.replace(
    b"from __future__ import annotations", b""
)
FORGED = b'print("every_rank_has_the_sum: 3 of 3 points")\n' + STUB.replace(b"from __future__ import annotations", b"")
# name: (tasks.py, points of the two checks, words in what was observed of the first)
CLASS: dict[str, tuple[bytes | None, tuple[float, float], str]] = {
    "a_solution": (SOLUTION, (3, 2), ""),
    "b_stub": (STUB, (0, 0), "NotImplementedError: write total: Sums `tensor`"),
    "c_forgets": ((SUM / "wrong" / "forgets.py").read_bytes(), (3, 1), ""),
    "d_syntax": (b"def total(:\n", (0, 0), "SyntaxError"),
    "e_tabs": (b"def total(tensor):\n        pass\n\tpass\n", (0, 0), "TabError"),
    "f_latin": (LATIN, (3, 2), ""),
    "g_utf16": ("x = 1\n".encode("utf-16"), (0, 0), "SyntaxError"),
    "h_leaves": (b"import os\nos._exit(0)\n", (0, 0), "ended"),
    "i_forged": (FORGED, (0, 0), "NotImplementedError: write total"),
    "j_missing": (None, (0, 0), "there is no tasks.py"),
}
START_SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    """What three calls gave: an interrupted one, one that went on, one that had nothing to do."""

    out: Path
    interrupted: subprocess.CompletedProcess[str]
    before: dict[str, int]
    further: list[str]
    left: list[psutil.Process]


def command(folder: Path, out: Path) -> list[str]:
    words = ["grade", "90", "--labs", LABS, "--all", folder, "--out", out, "--jobs", "2"]
    return [sys.executable, "-m", "distsim", *map(str, words)]


def written(out: Path) -> dict[str, int]:
    return {path.stem: path.stat().st_mtime_ns for path in (out / "results").glob("*.json")}


def below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder, out = tmp_path_factory.mktemp("class"), tmp_path_factory.mktemp("graded") / "out"
    for name, (content, _, _) in CLASS.items():
        (folder / name).mkdir()
        if content is not None:
            (folder / name / "tasks.py").write_bytes(content)
    (folder / "a_solution" / "lab.ipynb").write_bytes(b"{")
    started = subprocess.Popen(command(folder, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + START_SECONDS
    while not written(out) and time.monotonic() < give_up:
        time.sleep(0.05)
    below_it = below(psutil.Process(started.pid))
    started.send_signal(signal.SIGINT)
    said = started.communicate(timeout=60)
    left = [process for process in below_it if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    before = written(out)
    further = [
        subprocess.run(command(folder, out), capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    return Outcome(out, subprocess.CompletedProcess([], started.returncode, *said), before, further, left)


def test_an_interrupt_ends_all_and_loses_nothing(outcome: Outcome) -> None:
    assert (outcome.interrupted.returncode, outcome.interrupted.stderr.strip()) == (130, "distsim: interrupted")
    assert outcome.left == []
    assert 1 <= len(outcome.before) < len(CLASS)


def test_a_second_call_repeats_nothing(outcome: Outcome) -> None:
    after = written(outcome.out)
    assert after.keys() == CLASS.keys()
    kept = {name for name, moment in outcome.before.items() if CLASS[name][0] is not None}
    assert {name: after[name] for name in kept} == {name: outcome.before[name] for name in kept}
    taken = sum(content is not None for content, _, _ in CLASS.values())
    assert f"{len(CLASS) - len(kept)} graded now, {len(kept)} kept from before" in outcome.further[0]
    assert f"{len(CLASS) - taken} graded now, {taken} kept from before" in outcome.further[1]


@pytest.mark.parametrize("name", CLASS)
def test_points_and_words(outcome: Outcome, name: str) -> None:
    _, points, words = CLASS[name]
    table = json.loads((outcome.out / "results" / f"{name}.json").read_text())
    assert tuple(result["points"] for result in table["results"]) == points, table
    assert words in table["results"][0]["observed"]
    assert bool(table["sha256"]) == (CLASS[name][0] is not None)
    with (outcome.out / "gradebook.csv").open(newline="") as stream:
        (row,) = [row for row in csv.DictReader(stream) if row["student"] == name]
    assert float(row["total"]) == sum(points)
    page = (outcome.out / "feedback" / f"{name}.md").read_text()
    assert ("NotImplementedError" in page) == ("NotImplementedError" in words)


def test_an_edited_notebook_is_remarked_upon(outcome: Outcome) -> None:
    page = (outcome.out / "feedback" / "a_solution.md").read_text()
    assert r"Note: lab.ipynb is no notebook that can be read." in page


def test_nothing_is_left_of_a_grader_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "tasks.py").write_text("while True:\n    pass\n")
    with subprocess.Popen(command(tmp_path / "class", tmp_path / "out")) as started:
        try:
            seen: list[psutil.Process] = []
            kernel: psutil.Process | None = None
            give_up = time.monotonic() + START_SECONDS
            # nbval, its kernel, a host of ranks and a rank
            while (len(seen) < 4 or kernel is None) and time.monotonic() < give_up:
                time.sleep(0.1)
                seen = below(psutil.Process(started.pid))
                kernel = next((process for process in seen if "ipykernel_launcher" in command_line(process)), None)
            assert kernel is not None
            connection = json.loads(Path(kernel.cmdline()[-1]).read_text())
        finally:
            started.kill()
    _, left = psutil.wait_procs(seen, timeout=20)
    assert left == []
    assert connection["transport"] == "ipc"  # ports, chosen before they are bound, may be taken by then


def command_line(process: psutil.Process) -> list[str]:
    """Empty where the process has ended since it was seen."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def test_a_notebook_that_never_gets_to_a_check_is_no_fault_of_a_student(lab: Lab) -> None:
    notebook = metadata.read(lab.folder / "lab.ipynb")
    notebook.cells[1].source = "1 / 0"
    metadata.write(notebook, lab.folder / "lab.ipynb")
    with pytest.raises(RunError, match=r"did not reach its first check[\s\S]*division by zero"):
        grade(Submission("ada", Path("tasks.py"), SOLUTION), lab)


def test_a_kernel_that_did_not_come_up_is_started_once_more(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    full = {"results": [check.lost("").as_dict() for check in lab.checks.values()]}
    answers = [NotebookRun({}, late=False, output="the kernel died"), NotebookRun(full, late=False, output="")]
    monkeypatch.setattr(notebook_run, "run", lambda *_given, **_options: answers.pop(0))
    assert grade(Submission("ada", Path("tasks.py"), SOLUTION), lab).maximum == lab.points
    assert answers == []
