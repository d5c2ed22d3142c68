"""Hostile and broken submissions: right points, clear words, the next one's turn, nothing touched, nothing left."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from distsim.grading.lab import Lab
from distsim.testbed import Run, Testbed
from tests.grading.conftest import LABS, SUM
from tests.grading.hostile import FULL, KINDS, SOLUTION, Hostile

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

SHORT_SECONDS = 1.0
A_HANDFUL = ("fork_bomb_that_falls_silent", "deletes_all", "sends_a_result")
NOTEBOOKS = {
    "not_json": (lambda _book: "{", r"Note: lab.ipynb is no notebook that can be read."),
    "no_cells": (lambda book: json.dumps(book | {"cells": []}), "is missing in lab.ipynb"),
    "edited": (lambda book: json.dumps(book).replace("lab.check(", "float("), "was edited in lab.ipynb"),
}


class Hasty(Testbed):
    """Ends what does not end sooner than checks would, where a kind is known to go on."""

    hasty = False

    def run(self, *given: Any, **options: Any) -> Run:
        return super().run(*given, **options, **({"deadline_seconds": SHORT_SECONDS} if self.hasty else {}))


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hasty]:
    descriptors, processes = len(os.listdir("/proc/self/fd")), set(psutil.Process().children(recursive=True))
    with Hasty(tmp_path_factory.mktemp("lab")) as bed:
        yield bed
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert set(psutil.Process().children(recursive=True)) <= processes


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every byte, mode and time below it."""
    return {
        str(path.relative_to(folder)): (found.st_mode, found.st_mtime_ns, b"" if path.is_dir() else path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if (found := path.lstat())
    }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in A_HANDFUL else pytest.mark.more) for name in KINDS]
)
def test_points_are_right_and_the_word_is_clear(testbed: Hasty, name: str) -> None:
    kind, lab = KINDS[name], Lab.at(SUM)
    for path in lab.pristine:
        (testbed.folder / path.name).write_bytes(path.read_bytes())
    (testbed.folder / "tasks.py").write_bytes(kind.content)
    before, below = state(testbed.folder), psutil.Process().children(recursive=True)
    testbed.hasty = kind.slow
    results = [check.judged(testbed) for check in lab.checks.values()]
    told = "\n".join(result.text() for result in results)
    assert tuple(result.points for result in results) == kind.points, told
    lost = [result for result in results if not result.full]
    assert not lost or kind.words in lost[0].observed, told
    assert state(testbed.folder) == before
    assert testbed._host is not None
    host = psutil.Process(testbed._host.pid)  # the first run starts it, and it stays
    _, alive = psutil.wait_procs(set(psutil.Process().children(recursive=True)) - {*below, host}, timeout=10.0)
    assert alive == [], told


@dataclass
class Class:
    """A folder of submissions graded by the command, and whatever was seen of its processes meanwhile."""

    kinds: dict[str, Hostile]
    out: Path
    ended: subprocess.CompletedProcess[str]
    before: list[Any]
    after: list[Any]
    seen: set[psutil.Process] = field(default_factory=set)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, whole: Callable[[int, int], int]) -> Class:
    names = [*A_HANDFUL, *(name for name in KINDS if name not in A_HANDFUL)][: whole(len(A_HANDFUL), len(KINDS))]
    kinds = {name: KINDS[name] for name in names} | {name: Hostile(SOLUTION.encode(), FULL) for name in NOTEBOOKS}
    folder, out, canary = (tmp_path_factory.mktemp(name) for name in ("class", "graded", "canary"))
    (canary / "diary").write_text("dear diary")
    for name, kind in kinds.items():
        (folder / name).mkdir()
        (folder / name / "tasks.py").write_bytes(kind.content)
    book = json.loads((SUM / "lab.ipynb").read_text())
    for name, (edit, _) in NOTEBOOKS.items():
        (folder / name / "lab.ipynb").write_text(edit(book))
    watched = (folder, canary, SUM)
    before = [state(path) for path in watched]
    words = ["grade", "90", "--labs", LABS, "--all", folder, "--out", out, "--jobs", "2"]
    started = subprocess.Popen(
        [sys.executable, "-m", "distsim", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    seen: set[psutil.Process] = set()
    while started.poll() is None:
        try:
            seen |= set(psutil.Process(started.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            break
        time.sleep(0.1)
    ended = subprocess.CompletedProcess([], started.returncode, *started.communicate())
    return Class(kinds, out, ended, before, [state(path) for path in watched], seen)


@pytest.mark.more
def test_every_student_of_a_class_has_the_points_that_are_due(graded: Class) -> None:
    assert graded.ended.returncode == 0, graded.ended.stderr
    tables = {path.stem: json.loads(path.read_text())["results"] for path in (graded.out / "results").iterdir()}
    assert tables.keys() == graded.kinds.keys()
    found = {name: tuple(result["points"] for result in table) for name, table in tables.items()}
    assert found == {name: kind.points for name, kind in graded.kinds.items()}
    for name, kind in graded.kinds.items():
        lost = [result["observed"] for result in tables[name] if result["points"] < result["maximum"]]
        assert not lost or kind.words in lost[0], name
    with (graded.out / "gradebook.csv").open(newline="") as stream:
        rows = {row["student"]: float(row["total"]) for row in csv.DictReader(stream)}
    assert rows == {name: sum(kind.points) for name, kind in graded.kinds.items()}


@pytest.mark.more
def test_edited_notebooks_are_remarked_upon(graded: Class) -> None:
    assert graded.ended.returncode == 0, graded.ended.stderr
    for name, (_, words) in NOTEBOOKS.items():
        assert words in (graded.out / "feedback" / f"{name}.md").read_text()


@pytest.mark.more
def test_nothing_is_touched_and_nothing_is_left(graded: Class) -> None:
    assert graded.before == graded.after
    assert graded.seen
    _, left = psutil.wait_procs(graded.seen, timeout=20)
    assert left == []
