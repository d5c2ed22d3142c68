"""A submission has the same points in every grading, also on a busy machine."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distsim.grading.grade import grade
from distsim.grading.lab import Lab, all_labs
from distsim.grading.shared_fork_server import shared_fork_server
from distsim.grading.submission import Submission
from distsim.testbed import Run, Testbed

LABS = Path(__file__).parents[2] / "labs"
KEYS = [lab.key for lab in all_labs(LABS)]
BUSY = "while True: pass"
OTHER_SOURCES = {"random", "secrets", "uuid", "time", "os", "torch"}
SPOILED = {"07_asynchronous": [371419505]}
GRADED = [pytest.param(key, marks=() if key == KEYS[0] else pytest.mark.thorough) for key in KEYS]


def submissions(lab: Lab, wrong: int) -> list[Submission]:
    """The solution, and so many wrong ones: a file of `wrong` has what stands in place of parts of the solution."""
    solution = lab.folder / "solution.py"
    paths = sorted((lab.folder / "wrong").glob("*.py"))[:wrong]
    changed = [Submission(path.stem, path, b"\n\n".join([solution.read_bytes(), path.read_bytes()])) for path in paths]
    return [Submission("solution", solution, solution.read_bytes()), *changed]


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Other programs that compute meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def points_of_gradings(submission: Submission, lab: Lab, count: int) -> list[list[float]]:
    """The points of each check, in each of so many gradings: two at once, as a class is graded."""
    with shared_fork_server() as server, ThreadPoolExecutor(2) as two:
        gradings = list(two.map(lambda _: grade(submission, lab, server=server), range(count)))
    return [[result.points for result in grading.results] for grading in gradings]


@pytest.mark.real
@pytest.mark.more
@pytest.mark.parametrize("key", GRADED)
@pytest.mark.timeout(7200)
def test_the_points_are_the_same_each_time(key: str, whole: Callable[[int, int], int]) -> None:
    lab = Lab.at(LABS / key)
    for submission in submissions(lab, whole(1, 10)):
        points = points_of_gradings(submission, lab, whole(1, 10))
        with busy_loops(2):
            points += points_of_gradings(submission, lab, whole(1, 10))
        assert points == [points[0]] * len(points), submission.student


@pytest.mark.real
@pytest.mark.more
@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=() if key in SPOILED else pytest.mark.thorough) for key in KEYS]
)
@pytest.mark.timeout(3600)
def test_right_solutions_have_all_points_with_any_seed(
    key: str, whole: Callable[[int, int], int], tmp_path: Path
) -> None:
    """An instructor may take any seed. SPOILED are those with which a right solution once lost points."""
    lab = Lab.at(LABS / key)
    drawn = np.random.default_rng(18).integers(2**31, size=whole(1, 10)).tolist()
    for path in lab.pristine:
        shutil.copy(path, tmp_path)
    with Testbed(tmp_path, trusted=True) as testbed:
        for name, seed in product(("solution.py", "other.py"), [*SPOILED.get(key, ()), *drawn]):
            shutil.copy(lab.folder / name, tmp_path / "tasks.py")
            testbed.seed = seed
            for check in lab.checks.values():
                assert (judged := check.judged(testbed)).full, f"{name}, seed {seed}: {judged.text()}"


@pytest.mark.real
def test_gloo_is_not_asked_about_a_message_that_nobody_waits_for(tmp_path: Path) -> None:
    """What gloo then gives is chance: on a busy machine the points once were 0 or half."""
    lab = Lab.at(LABS / "02_collectives")
    wrong = (lab.folder / "wrong" / "does_not_wait_for_its_send.py").read_text()
    asked: list[str] = []

    class Asked(Testbed):
        def run(self, *given: Any, backend: str = "testbed", **more: Any) -> Run:
            asked.append(backend)
            return super().run(*given, backend=backend, **more)

    for path in lab.pristine:
        shutil.copy(path, tmp_path)
    (tmp_path / "tasks.py").write_text((lab.folder / "solution.py").read_text() + wrong)
    with Asked(tmp_path, trusted=True, seed=lab.seed()) as testbed:
        judged = lab.checks["shift_without_deadlock"].judged(testbed)
    assert "never waits for its isend" in judged.observed
    assert judged.points == judged.maximum / 2
    assert set(asked) == {"testbed"}


@pytest.mark.parametrize("key", KEYS)
def test_checks_draw_from_the_rng_of_the_testbed_alone(key: str) -> None:
    """Any other source would give a submission other inputs in each grading."""
    nodes = list(ast.walk(ast.parse((LABS / key / "checks.py").read_text())))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in modules} & OTHER_SOURCES
    of_numpy = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    assert {name for name in of_numpy if name.startswith("np.random.")} <= {"np.random.Generator"}
