"""A folder of submissions: what was graded is kept, and only that."""

from __future__ import annotations

import csv
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distsim.errors import InputError, RunError
from distsim.grading import class_grading, trust
from distsim.grading.class_folder import submissions
from distsim.grading.class_grading import Graded, check_apart, grade_all
from distsim.grading.grade import Grade
from distsim.grading.lab import Lab
from distsim.grading.notebook_run import StoppedError
from distsim.grading.submission import Submission
from distsim.progress import Phase

NAMES = ("ada", "bob", "=cmd|x", "<b>*eve*")
Grading = Callable[..., Grade]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class whose members all wrote something of their own."""
    for name in NAMES:
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "tasks.py").write_text(f"# {name}")
    return tmp_path / "class"


def full(submission: Submission, lab: Lab, seed: int = 7) -> Grade:
    results = [check.lost("`nothing` | <i>") if check.points == 2 else check.lost("") for check in lab.checks.values()]
    of_what = submission.student, lab.key, str(submission.path), submission.sha256, lab.sha256()
    return Grade(*of_what, seed, results, submission.remarks)


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each was graded, by a stand-in."""
    times: Counter[str] = Counter()

    def stand_in(submission: Submission, lab: Lab, *, seed: int, **_given: Any) -> Grade:
        times[submission.student] += 1
        return full(submission, lab, seed)

    monkeypatch.setattr(class_grading, "grade", stand_in)
    return times


def run(folder: Path, lab: Lab, out: Path, **more: Any) -> Graded:
    return grade_all(submissions(folder, lab).submissions, lab, out, report=lambda *_: None, **more)


def rows(out: Path) -> list[list[str]]:
    with (out / "gradebook.csv").open(newline="") as stream:
        return list(csv.reader(stream))


def test_all_are_graded_once(folder: Path, lab: Lab, tmp_path: Path, graded: Counter[str]) -> None:
    first = run(folder, lab, tmp_path / "out", jobs=3)
    assert (len(first.grades), first.again, first.failed) == (4, [], [])
    again = run(folder, lab, tmp_path / "out")
    assert set(again.again) == set(NAMES)
    assert set(graded.values()) == {1}
    head, *body = rows(tmp_path / "out")
    assert head == ["student", "name", "every_rank_has_the_sum", "the_counter_counts", "total", "maximum", "sha256"]
    assert [row[0] for row in body] == ["<b>*eve*", "'=cmd|x", "ada", "bob"]
    assert all(row[2:6] == ["0", "0", "0", "5"] for row in body)


def test_what_changed_is_graded_anew(folder: Path, lab: Lab, tmp_path: Path, graded: Counter[str]) -> None:
    run(folder, lab, tmp_path / "out")
    (folder / "bob" / "tasks.py").write_text("# better")
    run(folder, lab, tmp_path / "out")
    assert graded == Counter(dict.fromkeys(NAMES, 1) | {"bob": 2})
    (lab.folder / "ranks.py").write_text("# other")
    run(folder, lab, tmp_path / "out")
    assert graded == Counter(dict.fromkeys(NAMES, 2) | {"bob": 3})


def test_another_seed_is_graded_anew_and_told(folder: Path, lab: Lab, tmp_path: Path, graded: Counter[str]) -> None:
    run(folder, lab, tmp_path / "out")
    run(folder, lab, tmp_path / "out", seed=lab.seed())
    assert set(graded.values()) == {1}
    found = run(folder, lab, tmp_path / "out", seed=8)
    assert set(graded.values()) == {2}
    assert {grade.seed for grade in found.grades} == {8}
    assert "drawn from the seed 8." in (tmp_path / "out" / "feedback" / "ada.md").read_text()
    assert json.loads((tmp_path / "out" / "results" / "ada.json").read_text())["seed"] == 8


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": [{"x": 1}]}'])
def test_a_result_that_is_not_ours_is_made_anew(
    folder: Path, lab: Lab, tmp_path: Path, graded: Counter[str], text: str
) -> None:
    run(folder, lab, tmp_path / "out")
    (tmp_path / "out" / "results" / "ada.json").write_text(text)
    run(folder, lab, tmp_path / "out")
    assert graded["ada"] == 2
    assert json.loads((tmp_path / "out" / "results" / "ada.json").read_text())["student"] == "ada"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_keeps_what_was_graded_and_stops_the_others(
    folder: Path, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    stopped = []

    def grade(submission: Submission, lab: Lab, *, stop: threading.Event, **_given: Any) -> Grade:
        if submission.student == "<b>*eve*":
            return full(submission, lab)
        assert stop.wait(60.0)
        stopped.append(submission.student)
        raise StoppedError

    def report(phase: Phase) -> None:
        if phase.done:
            raise kind

    monkeypatch.setattr(class_grading, "grade", grade)
    with pytest.raises(kind):
        grade_all(submissions(folder, lab).submissions, lab, tmp_path / "out", jobs=2, report=report)
    assert len(stopped) <= 2
    assert [row[0] for row in rows(tmp_path / "out")[1:]] == ["<b>*eve*"]
    assert len(list((tmp_path / "out" / "results").iterdir())) == 1


def test_one_that_could_not_be_graded_is_named_and_kept_from_the_gradebook(
    folder: Path, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grade(submission: Submission, lab: Lab, **_given: Any) -> Grade:
        if submission.student == "bob":
            raise RunError("no kernel came up")
        return full(submission, lab)

    monkeypatch.setattr(class_grading, "grade", grade)
    found = run(folder, lab, tmp_path / "out")
    assert list(found.failed) == [("bob", "no kernel came up")]
    assert len(rows(tmp_path / "out")) == 4
    assert not (tmp_path / "out" / "results" / "bob.json").exists()


def test_strangers_are_not_run_unconfined_without_a_word(
    folder: Path, lab: Lab, tmp_path: Path, graded: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "reason_against", lambda: "no user namespaces")
    with pytest.raises(InputError, match=r"no user namespaces.*--trust"):
        run(folder, lab, tmp_path / "out")
    assert not graded
    run(folder, lab, tmp_path / "out", trust=True)
    assert len(graded) == 4


@pytest.mark.usefixtures("graded")
def test_feedback_shows_names_and_findings_as_they_are(folder: Path, lab: Lab, tmp_path: Path) -> None:
    run(folder, lab, tmp_path / "out")
    pages = {path.read_text() for path in (tmp_path / "out" / "feedback").iterdir()}
    assert len(pages) == 4
    (page,) = [page for page in pages if "eve\\*" in page]
    assert r"Student: \<b\>\*eve\*." in page
    assert "```text\n`nothing` | <i>\n```" in page
    assert "| the\\_counter\\_counts | 0 | 2 |" in page
    assert "Hint: Keep the count between the calls." in page


def test_the_results_are_not_put_among_the_submissions(folder: Path, tmp_path: Path) -> None:
    check_apart(tmp_path / "out", folder)
    for out in (folder, folder / "grades", tmp_path / "class" / ".." / "class" / "x"):
        with pytest.raises(InputError, match="outside of it"):
            check_apart(out, folder)


def test_a_place_that_cannot_be_written(folder: Path, lab: Lab, graded: Counter[str]) -> None:
    with pytest.raises(InputError, match="--out"):
        run(folder, lab, folder / "ada" / "tasks.py" / "out")
    assert not graded
