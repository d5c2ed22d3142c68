"""`distsim lab` and `distsim grade` as people type them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from distsim.cli.main import main
from distsim.course.learners_copy import lay
from distsim.errors import RunError
from distsim.grading import metadata, real
from distsim.grading.grade import Grade
from distsim.grading.lab import Lab
from distsim.grading.result import Result
from distsim.runtime.launch.launcher import Launch
from tests.pages import ROOT

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run: Run, shelf: Path) -> Run:
    """The command line in this process, with the tiny lab: (exit code, standard output, standard error)."""
    return lambda *arguments: run(*arguments, "--labs", shelf)


def test_list(run: Run) -> None:
    code, out, _ = run("lab", "list")
    assert code == 0
    assert "90_sum" in out
    assert "A sum over all ranks" in out
    (table,) = json.loads(run("lab", "list", "--json")[1])
    assert table["checks"] == {"every_rank_has_the_sum": 3.0, "the_counter_counts": 2.0}


@pytest.mark.parametrize("asked", ["15", "contest", "15_contest"])
def test_the_contest_is_started_as_a_lab_is(run: Run, asked: str, shelf: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "labs" / "15_contest", shelf / "15_contest")
    code, out, _ = run("lab", "start", asked, tmp_path)
    assert (code, out) == (0, f"{tmp_path}/15_contest/lab.ipynb has the problem, and says how to race\n")
    place = tmp_path / "15_contest"
    copied = {path.relative_to(place) for path in place.rglob("*") if path.is_file()}
    assert {Path("contest.toml"), Path("scenario.toml"), Path("references/ring/entry.toml")} < copied
    assert not [cell for cell in metadata.read(place / "lab.ipynb").cells if cell.get("outputs")]
    assert run("lab", "start", asked, tmp_path)[0] == 2
    code, _, err = run("grade", asked, "--submission", tmp_path)
    assert code == 2
    assert "Cure: call distsim contest" in err


def test_start_release_and_stub(run: Run, lab: Lab, tmp_path: Path) -> None:
    code, out, _ = run("lab", "start", "90", tmp_path / "mine")
    assert (code, out) == (
        0,
        f"{tmp_path}/mine/90_sum/lab.ipynb asks, {tmp_path}/mine/90_sum/tasks.py is yours to write\n",
    )
    (lab.folder / "tasks.py").unlink()
    code, _, err = run("lab", "release", tmp_path / "out")
    assert code == 2
    assert "Cure: write it anew: distsim lab stub 90" in err
    assert run("lab", "stub", "sum")[0] == 0
    assert run("lab", "release", tmp_path / "out")[:2] == (0, f"wrote 7 files into {tmp_path}/out\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("grade", "90"), "takes either --submission or --all"),
        (("grade", "90", "--submission", "x", "--all", "y"), "takes either --submission or --all"),
        (("grade", "90", "--submission", "nowhere"), "is not there"),
        (("grade", "90", "--all", "nowhere"), "is not a folder"),
        (("grade", "91", "--submission", "x"), "take one of 90_sum"),
        (("lab", "run", "90", "--folder", "nowhere"), "has no tasks.py"),
        (("lab", "strat", "90"), "write start"),
    ],
)
def test_bad_input_gets_one_message(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Cure: " in err
    assert "Traceback" not in err


def test_nothing_handed_in_is_graded_with_0_and_ends_well(run: Run, lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    code, out, err = run("grade", "90", "--submission", tmp_path / "ada", "--out", tmp_path / "out", "--json")
    assert (code, err) == (0, "")
    table = json.loads(out)
    assert (table["student"], table["points"], table["maximum"], table["sha256"]) == ("ada", 0.0, 5.0, "")
    assert table["seed"] == lab.seed()
    assert "there is no tasks.py" in (tmp_path / "out" / "feedback" / "ada.md").read_text()


@pytest.mark.parametrize(("well", "said"), [(True, "sums: tasks.py cannot"), (False, "every check: tasks.py cannot")])
def test_a_fault_of_the_import_names_the_checks_that_met_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, well: bool, said: str
) -> None:
    results = [Result("sums", 0.0, 2.0, "rank 1: tasks.py cannot be imported: TabError: mixed (tasks.py:3)")]
    results += [Result("counts", 1.0, 1.0)] * well
    found = Grade("ada", "90_sum", "tasks.py", "", "", 7, results, [])
    monkeypatch.setattr("distsim.grading.grade.grade", lambda *_, **__: found)
    (tmp_path / "ada").mkdir()
    code, out, _ = run("grade", "90", "--submission", tmp_path / "ada")
    assert code == 0
    assert f"\n{said} be imported: TabError: mixed (tasks.py:3)\n" in out


@pytest.mark.parametrize("asked", ["03", "labs/03_ring"])
def test_a_learners_copy_is_graded_by_the_packages_own_checks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, asked: str
) -> None:
    """Those in the copy may be changed, here so that they cannot even be read."""
    lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labs/03_ring/checks.py").write_text("1 / 0\n")
    (tmp_path / "empty").mkdir()
    arguments = ["grade", asked, "--submission", "empty", "--json"]
    monkeypatch.setattr(sys, "argv", ["distsim", *arguments])
    main()
    graded = json.loads(capsys.readouterr().out)
    assert graded["lab_sha256"] == Lab.at(ROOT / "labs/03_ring").sha256()
    monkeypatch.setattr(sys, "argv", ["distsim", *arguments, "--labs", "labs"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "ZeroDivisionError" in capsys.readouterr().err, "those that --labs names are taken as they are"


def test_many_numbers_fit_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "step_seconds": [0.0644612] * 100, "losses": [0.647541] * 100, "sum_of_parameters": 149.958,
        "model_seconds": 0.000855111, "all_reduce_seconds": 0.00507,
    }  # fmt: skip
    monkeypatch.setattr(real, "run", lambda *_, **__: [row] * 4)
    monkeypatch.setattr("distsim.cli.output.PIPE_WIDTH", 80)
    code, out, _ = run("lab", "run", "90")
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert code == 0
    assert [line.replace("│", "").split() for line in rows] == [
        [str(rank), "0.0644612", "0.647541", "149.958", "0.000855111", "0.00507"] for rank in range(4)
    ]
    assert max(map(len, rows)) <= 80


@pytest.mark.parametrize(("name", "title"), [("ada", "90_sum: ada"), ("90_sum", "90_sum")])
def test_the_table_of_a_submission_is_headed_by_lab_and_student(
    run: Run, tmp_path: Path, name: str, title: str
) -> None:
    (tmp_path / name).mkdir()
    code, out, _ = run("grade", "90", "--submission", tmp_path / name)
    assert (code, out.splitlines()[0].strip()) == (0, title)


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(300)
def test_run_and_grade_what_a_student_wrote(run: Run, lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "tasks.py").write_bytes((lab.folder / "solution.py").read_bytes())
    code, out, err = run("lab", "run", "90", "--folder", tmp_path / "ada", "--ranks", "3", "--json")
    assert (code, err) == (0, "")
    results = json.loads(out)
    assert [result["first"] for result in results] == [3.0] * 3
    assert all(result["seconds"] > 0 for result in results)
    assert [result["drawn"] for result in results] == [[0.01] * 5] * 3
    out = run("lab", "run", "90", "--folder", tmp_path / "ada")[1]
    assert [line.split()[-2] for line in out.splitlines() if line.startswith("│")] == ["0.01"] * 2
    assert "medians, --json tells all numbers: drawn (of 5)" in out
    code, out, err = run("grade", "90", "--submission", tmp_path / "ada")
    assert code == 0
    assert f"{tmp_path}/ada/tasks.py, sha256 " in out
    assert f"inputs drawn from the seed {lab.seed()}" in " ".join(out.split())
    assert [line.split() for line in out.splitlines() if "total" in line] == [["│", "total", "│", "5", "│", "5", "│"]]
    code, out, err = run("grade", "90", "--submission", tmp_path / "ada", "--seed", 2**63 - 1, "--json")
    assert (code, json.loads(out)["seed"], json.loads(out)["points"]) == (0, 2**63 - 1, 5.0)


@pytest.mark.real
@pytest.mark.more
@pytest.mark.iproute2
@pytest.mark.timeout(300)
def test_a_run_on_the_links_of_the_scenario_takes_as_long_as_they_do(lab: Lab) -> None:
    (lab.folder / "tasks.py").write_bytes((lab.folder / "solution.py").read_bytes())
    numbers = 10_000_000
    results = real.run(lab, arguments={"size": numbers}, emulate=True)
    at_1_gbit_per_second = 4 * numbers / 125e6
    assert all(at_1_gbit_per_second < result["seconds"] < 5 * at_1_gbit_per_second for result in results)


def test_hosts_of_a_learners_ranks_need_not_be_alike(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them may serve the others."""
    launches: list[Launch] = []

    def caught(launch: Launch) -> NoReturn:
        launches.append(launch)
        raise RunError("is not run")

    monkeypatch.setattr(real, "launched", caught)
    (lab.folder / "tasks.py").write_bytes((lab.folder / "solution.py").read_bytes())
    with pytest.raises(RunError, match="is not run"):
        real.run(lab, emulate=True)
    (launch,) = launches
    assert launch.network is not None
    assert not launch.network.alike


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(300)
def test_a_run_of_what_is_not_written_yet_names_the_line(run: Run) -> None:
    code, _, err = run("lab", "run", "90")
    assert code == 3
    assert "raised NotImplementedError at tasks.py:15" in err


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(600)
def test_named_mutants_are_tried_alone_and_shown(run: Run) -> None:
    wrong, dropped = "solution:Counter.add:1:other_operator", "solution:total:7:drop_wait"
    code, told, _ = run("lab", "power", "90", "--mutant", wrong, "--mutant", dropped)
    assert code == 1, "one of them survives"
    assert f"killed: {wrong}, the_counter_counts: [-2, -5, -10]" in told
    assert f"survivor: {dropped}, line = 'sending.wait()'" in told
    for line in ("+        self.count = self.count - number", "-        sending.wait()"):
        assert line in told
    assert told.count("@@") == 4, "two changes, each with one head"


def test_an_unknown_key_is_answered_by_the_nearest(run: Run) -> None:
    code, _, said = run("lab", "power", "90", "--mutant", "solution:total:7:drop_weight")
    assert code == 2
    assert "is the key of no mutant. Cure: take solution:total:7:drop_wait" in said
