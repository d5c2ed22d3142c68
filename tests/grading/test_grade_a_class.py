"""Thirty submissions of lab 03 on two cores: in under ten minutes, with an interrupt that loses and repeats nothing."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from distsim.grading.lab import Lab
from tests.labs.test_every_lab import LABS, WRONG, kept, solution

KEY = "03_ring"
MOST_SECONDS = 600.0  # for thirty; three of them take a tenth, and starting takes longer than that on a busy machine


def members(lab: Lab) -> Iterator[tuple[str, str, float]]:
    """Name, tasks.py and points of student after student: right ones, stubs, and a wrong solution after the other."""
    wrong = itertools.cycle(name for key, name in WRONG if key == KEY)
    for number in itertools.count():
        name = next(wrong)
        text = (LABS / KEY / "wrong" / f"{name}.py").read_text()
        yield f"{name}_{number}", f"{solution(KEY)}\n\n{text}", kept(KEY, name)
        for file, points in (("solution", lab.points), ("tasks", 0.0), ("other", lab.points)):
            yield f"{file}_{number}", (LABS / KEY / f"{file}.py").read_text() + f"\n# {number}\n", points


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(1200)
def test_a_class_is_graded_in_time_whatever_interrupts(tmp_path: Path, whole: Callable[[int, int], int]) -> None:
    count, points = whole(3, 30), {}
    for name, tasks, worth in itertools.islice(members(Lab.at(LABS / KEY)), count):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "tasks.py").write_text(tasks)
        points[name] = worth
    out = tmp_path / "out"
    words = ["grade", "03", "--labs", LABS, "--all", tmp_path / "class", "--out", out, "--jobs", "2"]
    command = [sys.executable, "-m", "distsim", *map(str, words)]

    began = time.monotonic()
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while len(written(out)) < count // 3 and started.poll() is None:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=60)
    assert (started.returncode, said.strip()) == (130, "distsim: interrupted")
    before = written(out)
    assert count // 3 <= len(before) < count

    again = subprocess.run(command, capture_output=True, text=True, check=True)
    took = time.monotonic() - began
    assert f"{count - len(before)} graded now, {len(before)} kept from before" in again.stdout
    after = written(out)
    assert {name: after[name] for name in before} == before
    found = {name: json.loads((out / "results" / f"{name}.json").read_text())["points"] for name in after}
    assert found == points
    assert took < MOST_SECONDS


def written(out: Path) -> dict[str, int]:
    """When each result was."""
    return {path.stem: path.stat().st_mtime_ns for path in (out / "results").glob("*.json")}
