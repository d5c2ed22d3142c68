"""Every exercise of every chapter: full points for what is right, feedback for what is wrong, the hint for neither."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.course import Exercise, cells, exercises_in
from distsim.course.answer import UNTOUCHED
from tests.course.answers import ANSWERS, Answers

COURSE = Path(__file__).parents[2] / "course"
FILES = sorted((COURSE / "exercises").glob("*.py"))
MOST_POINTS = 12


@cache
def exercises(stem: str) -> dict[str, Exercise]:
    return exercises_in(COURSE / "exercises" / f"{stem}.py")


EVERY = [(path.stem, name) for path in FILES for name in ANSWERS.get(path.stem, ())]


@pytest.mark.parametrize("stem", [path.stem for path in FILES])
def test_every_exercise_has_answers_here_and_cells_in_its_chapter(stem: str) -> None:
    found = exercises(stem)
    assert list(ANSWERS[stem]) == list(found)
    assert 3 <= len(found) <= 5
    assert sum(one.points for one in found.values()) <= MOST_POINTS
    notebook = nbformat.read(COURSE / f"{stem}.ipynb", as_version=4)
    assert cells.problems(notebook, stem.partition("_")[0], found) == []


@pytest.mark.parametrize(("stem", "name"), EVERY)
def test_right_answers_have_full_points(stem: str, name: str) -> None:
    one, answers = exercises(stem)[name], ANSWERS[stem][name]
    assert answers.right
    for answer in answers.right:
        result = one.judged(answer)
        assert (result.full, result.points) == (True, one.points), result.text()


@pytest.mark.parametrize(("stem", "name"), EVERY)
def test_an_untouched_answer_has_no_points_and_the_hint(stem: str, name: str) -> None:
    one = exercises(stem)[name]
    result = one.judged(_untouched(stem, name))
    assert (result.points, result.hint, result.observed) == (0.0, one.hint, UNTOUCHED)


@pytest.mark.parametrize(("stem", "name"), EVERY)
def test_wrong_answers_have_the_feedback_meant_for_them(stem: str, name: str) -> None:
    one, answers = exercises(stem)[name], ANSWERS[stem][name]
    assert len(answers.wrong) >= 2
    for answer, words in answers.wrong:
        result = one.judged(answer)
        assert result.points < one.points, result.text()
        assert words in result.hint, result.text()
        assert "could not be judged" not in result.observed, result.text()


@pytest.mark.parametrize(("stem", "name"), EVERY)
def test_neither_hint_nor_feedback_tells_the_answer(stem: str, name: str) -> None:
    one, answers = exercises(stem)[name], ANSWERS[stem][name]
    told = [one.hint, *(one.judged(answer).hint for answer, _ in answers.wrong)]
    for right in _written(answers):
        assert not any(right in _numbers(text) for text in told), right


@pytest.mark.parametrize(("stem", "name"), EVERY)
def test_no_answer_stands_above_its_question(stem: str, name: str) -> None:
    """Of numbers that nobody meets by chance: those with a decimal point."""
    above = []
    for cell in nbformat.read(COURSE / f"{stem}.ipynb", as_version=4).cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == cells.grade_id(stem.partition("_")[0], name):
            break
        above.append(cell.source)
        above += [str(output.get("text", "") or output.get("data", {}).get("text/plain", "")) for output in _of(cell)]
    else:
        pytest.fail("it has no cell")
    for right in _written(ANSWERS[stem][name]):
        assert right not in _numbers("\n".join(above))


def _of(cell: Any) -> list[Any]:
    return list(cell.get("outputs", []))


def _written(answers: Answers) -> set[str]:
    """How right answers would be printed."""
    values = [right for right in answers.right if isinstance(right, float) and not right.is_integer()]
    printed = {f"{value:.{digits}f}" for value in values for digits in (1, 2, 3)}
    return {text for text in printed if len(text.replace(".", "").lstrip("0")) > 1}  # one digit is met by chance


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", text))


def _untouched(stem: str, name: str) -> object:
    """What the variable is when the chapter's answer cell is run as it stands."""
    own = f"{cells.grade_id(stem.partition('_')[0], name)}-answer"
    notebook = nbformat.read(COURSE / f"{stem}.ipynb", as_version=4)
    (source,) = [cell.source for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == own]
    space: dict[str, Any] = {}
    exec(source, space)
    return space[name]
