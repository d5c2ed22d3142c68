"""The README: short, its commands are those of the command line, and its figures those of the accuracy page."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import click
import pytest

from distsim.cli.main import distsim
from distsim.contest.problem import contest_folder
from distsim.examples import example
from distsim.scenario import Scenario
from tests.pages import README, ROOT, Page, run_command

MOST_BYTES = 9216
WARNS_WHEN_BUSY = ("calibrate", "compare", "profile")  # of a machine that does other work meanwhile
OF_LABS = ("lab", "grade")


def test_it_is_short() -> None:
    assert README.path.stat().st_size <= MOST_BYTES


def test_its_scenario_is_valid() -> None:
    (text,) = README.blocks("toml")
    assert Scenario.loads(text).cluster.workers == 5


def test_the_table_of_commands_is_the_command_line() -> None:
    rows = re.findall(r"^\| `distsim (\w+)", README.text, re.MULTILINE)
    context = click.Context(distsim)
    assert sorted(rows) == distsim.list_commands(context)
    (labs,) = re.findall(r"^\| `distsim lab (\w+) .+also (.+) \|$", README.text, re.MULTILINE)
    group = distsim.get_command(context, "lab")
    assert isinstance(group, click.Group)
    assert {labs[0], *re.findall(r"`(\w+)`", labs[1])} == set(group.commands)


def test_its_figures_of_accuracy_are_those_of_the_page() -> None:
    def rows(page: Page) -> list[str]:
        return re.findall(r"^\| (?:policy|[\w ]+, (?:ring|parameter server)) \|.*\|$", page.text, re.MULTILINE)

    assert len(rows(README)) >= 5
    assert set(rows(README)) < set(rows(Page("course/ACCURACY.md")))


def lab_of_the_readme(folder: Path) -> Path:
    """The small lab of the tests, under the number and name that the README takes as its example."""
    lab = folder / "labs" / "03_ring"
    shutil.copytree(ROOT / "tests" / "grading" / "labs" / "90_sum", lab)
    return lab


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(600)
def test_commands_run_in_their_order(tmp_path: Path) -> None:
    scenario = example("backup_server").replacing({"steps": 10, "compute.mean": "10 ms", "workload.gradient": "64 KiB"})
    (tmp_path / "run.toml").write_text(scenario.dumps())
    shutil.copytree(contest_folder() / "my_entries", tmp_path / "submissions")
    (tmp_path / "my_model.py").write_text(Page("course/YOUR_MODEL.md").blocks("python")[0], "utf-8")
    # `course` serves until Ctrl-C; tests/test_course_command.py starts and ends it.
    ours = [words for words in README.commands("distsim") if words[1] not in ("course", *OF_LABS)]
    assert len(ours) >= 9
    for words in ours:
        alone = ["--busy", "1"] if words[1] == "profile" else []  # test_pages runs the whole of it
        done = run_command([*words, *alone], tmp_path)
        assert done.returncode == 0, (words, done.stderr)
        warned = all(line.startswith("distsim: warning: ") for line in done.stderr.splitlines())
        assert warned if words[1] in WARNS_WHEN_BUSY else not done.stderr, (words, done.stderr)
    assert (tmp_path / "report.html").exists()


@pytest.mark.real
@pytest.mark.more
def test_commands_of_labs_run_in_their_order(tmp_path: Path) -> None:
    """The README's, for one submission, and the instructors', for a class."""
    lab = lab_of_the_readme(tmp_path)
    start, grade = (words for words in README.commands("distsim") if words[1] in OF_LABS)
    assert run_command(start, tmp_path).returncode == 0
    shutil.copyfile(lab / "solution.py", tmp_path / "work" / "03_ring" / "tasks.py")
    done = run_command(grade, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"total +│ +5 │ +5 │", done.stdout)
    (whole_class,) = (words for words in Page("course/FOR_INSTRUCTORS.md").commands("distsim") if "--all" in words)
    (tmp_path / "submissions" / "ada").mkdir(parents=True)
    shutil.copyfile(lab / "solution.py", tmp_path / "submissions" / "ada" / "tasks.py")
    assert run_command([word.replace("01", "03") for word in whole_class], tmp_path).returncode == 0
    assert "\nada,ada,3,2,5,5," in (tmp_path / "grades_03" / "gradebook.csv").read_text()
