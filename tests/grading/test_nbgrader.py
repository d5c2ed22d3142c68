"""The labs as a course of nbgrader, graded by nbgrader itself: the points are ours."""

from __future__ import annotations

import csv
import html
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from distsim.errors import InputError
from distsim.grading import nbgrader, trust
from distsim.grading.lab import NOTEBOOK, TASKS, Lab, all_labs
from distsim.grading.notebook import Notebook
from distsim.grading.release import release_for_nbgrader
from tests.installed import Environment
from tests.labs.test_every_lab import LABS, WRONG, caught_by, kept, solution
from tests.pages import ROOT

LAB_KEYS = [lab.key for lab in all_labs(LABS)]
SECONDS = 600.0
# In a user namespace that may not have any within it, ranks cannot be confined: as in most containers.
NO_NAMESPACES = 'echo 0 >/proc/sys/user/max_user_namespaces; "$@"'
UNCONFINED = ("unshare", "--user", "--map-root-user", "sh", "-c", NO_NAMESPACES, "")


@dataclass(frozen=True)
class Course:
    """A course folder, and an environment with nbgrader."""

    folder: Path
    environment: Environment

    def nbgrader(
        self, *words: str, before: tuple[str, ...] = (), more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Calls nbgrader in the folder. before: words before the command."""
        path = os.pathsep.join([str(self.environment.program("")), os.environ["PATH"]])
        variables = {**os.environ, "PATH": path, **(more or {})}
        command = [*before, str(self.environment.program("nbgrader")), *words]
        return subprocess.run(
            command, cwd=self.folder, env=variables, text=True, timeout=SECONDS, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def well(self, *words: str) -> None:
        done = self.nbgrader(*words)
        assert done.returncode == 0, done.stdout[-4000:]

    def submit(self, student: str, key: str, tasks: str) -> None:
        place = self.folder / "submitted" / student / key
        shutil.copytree(self.folder / "release" / key, place)
        (place / TASKS).write_text(tasks)

    def grades(self, key: str) -> dict[str, tuple[float, float]]:
        """The score and the maximum of each student of an assignment, as nbgrader exports them."""
        self.well("export")
        with (self.folder / "grades.csv").open(newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["assignment"] == key and row["score"]]
        return {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in rows}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """All labs; nbgrader in an environment of its own beside our packages, since it changes every JupyterLab there."""
    environment = Environment.made(tmp_path_factory.mktemp("environment") / "venv")
    packages = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (environment.packages / "borrowed.pth").write_text(f"{packages}\n{ROOT}\n")
    templates = environment.folder / "share" / "jupyter"
    templates.mkdir(parents=True)
    (templates / "nbconvert").symlink_to(Path(sys.prefix) / "share" / "jupyter" / "nbconvert")
    pip = [sys.executable, "-m", "pip", "--python", str(environment.program("python")), "install", "--quiet"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *constraints, nbgrader.REQUIREMENT], timeout=SECONDS, check=True)
    own = ["--ignore-installed", "--no-deps", "alembic"]  # borrowed, its program would not find nbgrader
    subprocess.run([*pip, *constraints, *own], timeout=SECONDS, check=True)
    folder = tmp_path_factory.mktemp("course") / "course"
    release_for_nbgrader(all_labs(LABS), folder)
    return Course(folder, environment)


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("key", [LAB_KEYS[0], *(pytest.param(key, marks=pytest.mark.thorough) for key in LAB_KEYS[1:])])
def test_nbgrader_gives_the_points_that_we_give(course: Course, key: str) -> None:
    """A right solution, one with a part of the points, and the stub; with feedback for each."""
    lab = Lab.at(LABS / key)
    wrong = next(name for one, name in WRONG if one == key)
    course.well("generate_assignment", key)
    course.submit("ada", key, solution(key))
    course.submit("bob", key, f"{solution(key)}\n\n{(LABS / key / 'wrong' / f'{wrong}.py').read_text()}")
    course.submit("eve", key, (LABS / key / TASKS).read_text())
    course.well("autograde", key)
    assert 0.0 < kept(key, wrong) < lab.points
    assert course.grades(key) == {
        "ada": (lab.points, lab.points), "bob": (kept(key, wrong), lab.points), "eve": (0.0, lab.points)
    }  # fmt: skip
    course.well("generate_feedback", key)
    page = (course.folder / "feedback" / "bob" / key / "lab.html").read_text("utf-8")
    page = html.unescape(html.unescape(page))
    assert lab.checks[sorted(caught_by(key, wrong))[0]].hint.split("`")[0] in page


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(1200)
def test_where_nothing_can_be_confined_nbgrader_gives_no_points_unless_told_to(course: Course) -> None:
    key = LAB_KEYS[0]
    lab = Lab.at(LABS / key)
    if not (course.folder / "release" / key).exists():
        course.well("generate_assignment", key)
    course.submit("zoe", key, solution(key))
    words = ("autograde", key, "--student=zoe")
    refused = course.nbgrader(*words, before=UNCONFINED)
    assert refused.returncode != 0
    assert "would run without confinement here" in refused.stdout
    assert nbgrader.TRUST_VARIABLE in refused.stdout
    assert not (course.folder / "autograded" / "zoe" / key).exists()
    assert course.grades(key).get("zoe", (0.0,))[0] == 0.0
    trusted = course.nbgrader(*words, before=UNCONFINED, more={nbgrader.TRUST_VARIABLE: "1"})
    assert trusted.returncode == 0, trusted.stdout[-4000:]
    assert course.grades(key)["zoe"] == (lab.points, lab.points)


def test_the_course_folder_has_all_labs_and_settings_that_keep_what_students_write(shelf: Path, tmp_path: Path) -> None:
    written = release_for_nbgrader(all_labs(shelf), tmp_path / "out")
    assert set(written) == {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert (tmp_path / "out" / "source" / "90_sum" / NOTEBOOK).is_file()
    assert not list((tmp_path / "out").rglob("solution.py"))
    settings = (tmp_path / "out" / "nbgrader_config.py").read_text()
    assert '"90_sum": ["tasks.py"],' in settings
    compile(settings, "nbgrader_config.py", "exec")


def test_while_nbgrader_grades_nothing_runs_for_real_and_nothing_runs_unconfined_unasked(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("distsim.grading.trust", "distsim.testbed.sandbox"):
        monkeypatch.setattr(f"{module}.reason_against", lambda: "no user namespaces")
    assert trust.trusted()
    monkeypatch.setenv(nbgrader.EXECUTION_VARIABLE, "autograde")
    assert not trust.trusted()
    with pytest.raises(InputError, match=r"ada.*no user namespaces.*DISTSIM_GRADING_TRUST"):
        nbgrader.check_confined(None, {"nbgrader": {"student": "ada"}})
    monkeypatch.setenv(nbgrader.TRUST_VARIABLE, "1")
    assert trust.trusted()
    assert nbgrader.check_confined("notebook", {}) == ("notebook", {})
    assert Notebook("90_sum", lab.folder).run() == []
    assert "not run while nbgrader grades" in capsys.readouterr().out
