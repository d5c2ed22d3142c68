"""What a chapter's notebook calls."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distsim import material
from distsim.course import Chapter, exercise, number
from distsim.course.chapter import RECORDED, RECORDED_GUESSES, MissingGuessError
from distsim.course.record import FILE, Compared, Record
from distsim.errors import InputError

EXERCISES = """
from distsim.course import exercise, number

@exercise(points=2, hint="Every worker brings a batch.", because="Four batches of eight.")
def effective_batch(answer):
    return number(answer, right=4 * 8, wrong={8: "That is one worker's."})

@exercise(points=1.5, hint="h")
def broken(answer):
    return 1 / 0

@exercise(points=1, hint="h")
def forgotten(answer):
    number(answer, right=1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "course" / "exercises").mkdir(parents=True)
    (tmp_path / "course" / "exercises" / "02_one_step.py").write_text(EXERCISES)
    return tmp_path / "course"


@pytest.fixture
def chapter(folder: Path) -> Chapter:
    return Chapter("02", folder)


def test_it_is_found_from_the_course_below_it_and_above_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for here in (folder, folder.parent, folder / "exercises"):
        monkeypatch.chdir(here)
        assert (Chapter("02").name, Chapter("02").number) == ("02_one_step", "02")


def test_elsewhere_it_is_the_one_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Chapter("00").name == "00_tour"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("50 ms",), "'50 ms': must be a finite number"),
        ((float("nan"),), "must be a finite number"),
        ((True,), "True: must be a finite number"),
        ((b"55",), "must be a finite number"),
        (([50, 60],), "must be a finite number"),
        ((55, 5), "'55,5': has a comma"),
    ],
)
def test_a_notebook_shows_one_sentence_for_what_is_no_guess(chapter: Chapter, given: Any, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as raised:
        chapter.guess("step time", *given, unit="ms")
    assert raised.value._render_traceback_() == [str(raised.value)]


@pytest.mark.parametrize("guess", [..., "50 ms", [float("inf")]])
def test_what_is_no_number_is_not_compared(chapter: Chapter, guess: Any) -> None:
    with pytest.raises(InputError, match="guess = "):
        chapter.compare(guess=guess, measurement=3.0)


@pytest.mark.parametrize("number", ["03", "2", "0", "", "..", "02_one_step", "0*"])
def test_another_number_is_refused_with_those_there_are(folder: Path, number: str) -> None:
    with pytest.raises(InputError, match=r'names no chapter of the course\. Cure: take one of "02"'):
        Chapter(number, folder)


def test_right_answers_get_points_and_the_reason(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    points = chapter.check("effective_batch", 32)
    assert points == 2.0
    assert points.lines == "effective_batch: 2 of 2 points\n  Four batches of eight."
    assert capsys.readouterr() == ("", ""), "what is printed would stand above the card, once more"


def test_wrong_and_untouched_ones_get_feedback_or_the_hint(chapter: Chapter) -> None:
    found = [chapter.check("effective_batch", answer) for answer in (8, 9, ...)]
    assert found == [0.0, 0.0, 0.0]
    assert [points.lines.splitlines() for points in found] == [
        ["effective_batch: 0 of 2 points", f"  observed: {observed}", f"  hint:     {hint}"]
        for observed, hint in (
            ("8", "That is one worker's."),
            ("9", "Every worker brings a batch."),
            ("no answer yet", "Every worker brings a batch."),
        )
    ]


def test_the_total_is_of_the_latest_answers_out_of_all_exercises(chapter: Chapter) -> None:
    assert repr(chapter.total()) == "0 of 4.5 points"
    for answer in (32, 8, 32):
        chapter.check("effective_batch", answer)
    assert repr(chapter.total()) == "2 of 4.5 points"
    assert "Chapter 02 so far: 2 of 4.5 points" in chapter.check("effective_batch", 32)._repr_html_()


def test_an_exercise_that_fails_costs_its_points_and_nothing_else(chapter: Chapter) -> None:
    broken, forgotten = chapter.check("broken", 1), chapter.check("forgotten", 1)
    assert broken == forgotten == 0.0
    told = broken.lines + forgotten.lines
    assert "could not be judged (ZeroDivisionError: division by zero (02_one_step.py, line 10))" in told
    assert "an exercise returns what number, choice, sequence or function judged, not None" in told


def test_an_unknown_exercise_is_refused_with_those_there_are(chapter: Chapter) -> None:
    with pytest.raises(InputError, match=r"is no exercise of chapter 02\. Cure: take one of effective_batch, broken"):
        chapter.check("batch", 1)


def test_a_guess_may_change_until_the_answers_are_shown(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    assert chapter.guess("step time", 55, unit="ms") == 55.0
    assert chapter.guess("step time", 60, unit="ms") == 60.0
    assert chapter.guess("step time", None, unit="ms") == 60.0
    drawn = chapter.compare(guess=60.0, measurement=[80.0], unit="ms", quantity="step time")
    assert drawn.summary == "Measured: a step time of 80 ms; the guess is 25 % below."
    assert chapter.guess("step time", 80, unit="ms") == 60.0
    assert chapter.guess("share", 0.5) == 0.5
    assert capsys.readouterr().out.splitlines() == [
        "Your guess of the step time: 55 ms",
        "Your guess of the step time: 60 ms",
        "Your guess of the step time: 60 ms",
        "Your guess of the step time: 60 ms (made before the answers were shown: the first guess counts)",
        "Your guess of the share: 0.5",
    ]


@pytest.mark.parametrize("nothing", [..., None])
def test_without_a_number_the_chapter_waits_and_says_so_kindly(chapter: Chapter, nothing: Any) -> None:
    with pytest.raises(MissingGuessError) as raised:
        chapter.guess("step time", nothing, unit="ms")
    said = "Your guess of the step time? Write a number of ms in this cell. Then run the cell again."
    assert raised.value._render_traceback_() == [said]
    with pytest.raises(MissingGuessError, match="Write a number in this cell"):
        chapter.guess("share", nothing)


def test_where_nobody_is_there_to_guess_the_recorded_guess_is_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(RECORDED, "1")
    (folder / "exercises" / RECORDED_GUESSES).write_text('["02"]\n"step time" = 47\n')
    chapter = Chapter("02", folder)
    assert [chapter.guess("step time", given, unit="ms") for given in (..., 50, ...)] == [47.0, 50.0, 50.0]
    assert capsys.readouterr().out.splitlines()[0] == "The recorded guess of the step time: 47 ms"
    with pytest.raises(InputError, match=r"recorded guess of = 'share': is not in .*recorded_guesses\.toml"):
        chapter.guess("share", ...)


def of_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes the folder a learner's copy, and gives the path of its record."""
    (folder.parent / material.RECORD).write_text("{}")
    monkeypatch.chdir(folder)
    return folder / FILE


def test_a_copy_keeps_the_first_comparison_of_each_quantity(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = of_copy(folder, monkeypatch)
    (folder / "exercises" / "01_why.py").write_text(EXERCISES)
    for of, guess in (("02", 60), ("02", 80), ("01", 3)):
        chapter = Chapter(of, folder)
        kept = chapter.guess("step time", guess, unit="ms")
        chapter.compare(guess=kept, simulation=81.0, unit="ms", quantity="step time")  # not measured yet
        chapter.compare(guess=kept, formula=70, simulation=[81.0, 83.0], measurement=80.0, quantity="step time")
    assert [(one.chapter, one.guess) for one in Record(path).kept()] == [("02", 60.0), ("01", 3.0)]
    assert Record(path).kept()[0] == Compared("02", "step time", "ms", 60.0, (70.0,), (81.0, 83.0), (80.0,))
    assert capsys.readouterr().out.count("Your record keeps your first guess of the step time: 60 ms") == 2
    drawn = chapter.record()
    assert [row["quantity"] for row in drawn.table] == ["01: step time (ms)", "02: step time (ms)"]
    assert [row["the guess is"] for row in drawn.table] == ["96 % below", "25 % below"]


@pytest.mark.parametrize("content", ["", "[]]", '[{"chapter": "02"}]', '{"a": 1}'])
def test_a_file_that_is_no_record_is_told_and_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    path = of_copy(folder, monkeypatch)
    path.write_text(content)
    chapter = Chapter("02", folder)
    said = r"is not a record that distsim wrote .*Cure: move the file away"
    with pytest.raises(InputError, match=said):
        chapter.record()
    drawn = chapter.compare(guess=1.0, measurement=2.0)
    assert "the guess is 50 % below" in drawn.summary, "the measurement took long, so its figure is shown"
    assert re.search(f"Not in your record of guesses. record of guesses = .*{said}", capsys.readouterr().out)
    assert path.read_text() == content


def test_without_its_file_a_record_begins_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = of_copy(folder, monkeypatch)
    chapter = Chapter("02", folder)
    chapter.compare(guess=1.0, measurement=2.0)
    path.unlink()
    assert len(chapter.record().table) == 0
    chapter.compare(guess=3.0, measurement=2.0)
    assert [one.guess for one in Record(path).kept()] == [3.0]


def test_elsewhere_and_with_recorded_guesses_the_record_lasts_as_long_as_the_kernel(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(folder.rglob("*"))
    monkeypatch.chdir(folder)
    chapters = [Chapter("02", folder)]
    path = of_copy(folder, monkeypatch)
    monkeypatch.setenv(RECORDED, "1")
    chapters.append(Chapter("02", folder))
    for chapter in chapters:
        assert chapter.record().summary == "No guess has been compared with a measurement yet."
        chapter.compare(guess=60.0, measurement=[80.0])
        assert len(chapter.record().table) == 1
    assert not path.exists()
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("value", ["many", float("nan"), float("inf"), [], 10**400])
def test_a_guess_is_a_number(chapter: Chapter, value: object) -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        chapter.guess("step time", value)  # type: ignore[arg-type]


def test_a_number_of_numpys_can_be_compared(chapter: Chapter) -> None:
    drawn = chapter.compare(guess=60.0, simulation=np.float64(70.0), measurement=[np.float64(80.0)])
    assert "the simulation is 12 % below" in drawn.summary


def test_without_a_guess_nothing_is_shown(chapter: Chapter, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = chapter.compare(guess=None, formula=1.0, simulation=2.0, measurement=[3.0])
    assert [row["step time (ms)"] for row in drawn.table] == [None] * 4
    assert capsys.readouterr().out == "Guess first: the other three are drawn then.\n"


@pytest.mark.parametrize(("points", "hint"), [(0, "h"), (-1, "h"), (float("nan"), "h"), (1, " ")])
def test_an_exercise_has_points_and_a_hint(points: float, hint: str) -> None:
    with pytest.raises(InputError):
        exercise(points=points, hint=hint)


def test_a_file_without_exercises_and_a_broken_one_are_told(folder: Path) -> None:
    (folder / "exercises" / "03_none.py").write_text("")
    (folder / "exercises" / "04_broken.py").write_text("1 / 0")
    with pytest.raises(InputError, match="has no function under @exercise"):
        _ = Chapter("03", folder).exercises
    with pytest.raises(InputError, match=r"cannot be imported \(ZeroDivisionError"):
        _ = Chapter("04", folder).exercises


def test_importing_needs_neither_torch_nor_figures() -> None:
    code = "import sys, distsim.course; print([name for name in ('torch', 'scipy', 'plotly') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_result_of_a_right_answer_never_stands_in_that_of_a_wrong_one() -> None:
    made = exercise(points=1, hint="Think.")(lambda answer: number(answer, right=1234.5))
    assert "1234" not in made.judged(7).text()
