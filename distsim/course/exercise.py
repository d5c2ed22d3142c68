"""An exercise: a function of a chapter's file in course/exercises that judges one answer.

from distsim.course import exercise, number

@exercise(points=2, hint="Every worker brings a batch of its own.")
def effective_batch(answer):
    return number(answer, right=WORKERS * BATCH, wrong={BATCH: "That is the batch of one worker."})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from distsim.course.answer import Judged
from distsim.errors import InputError
from distsim.grading.module_from_path import error_with_line, imported
from distsim.grading.result import UNTOUCHED, Result, cut, require_worth


@dataclass(frozen=True)
class Exercise:
    """A question of a chapter. points: for the right answer; hint: one sentence for an answer without points.

    because: one sentence for an answer with all points.
    """

    name: str
    points: float
    hint: str
    because: str
    function: Callable[[object], Judged] = field(repr=False)

    def judged(self, answer: object) -> Result:
        """The result of an answer. Raises nothing for any answer, and never tells the right answer."""
        if answer is ... or answer is None:
            return self._result(Judged(0.0, UNTOUCHED))
        try:
            found = self.function(answer)
            if not isinstance(found, Judged):
                raise TypeError(f"an exercise returns what number, choice, sequence or function judged, not {found!r}")
            return self._result(found)
        except Exception as error:  # noqa: BLE001 - an answer may be anything, and do anything when it is looked at
            return self._result(Judged(0.0, f"this answer could not be judged ({self._reason(error)})"))

    def _result(self, judged: Judged) -> Result:
        points = round(self.points * judged.share, 2)
        return Result(self.name, points, self.points, cut(judged.observed), hint=judged.feedback or self.hint)

    def _reason(self, error: Exception) -> str:
        try:
            return error_with_line(error, Path(self.function.__code__.co_filename).name)
        except Exception:  # noqa: BLE001 - an error that cannot be told
            return type(error).__name__


def exercise(*, points: float, hint: str, because: str = "") -> Callable[[Callable[[object], Judged]], Exercise]:
    """Turns a function that judges an answer into an exercise.

    Raises InputError where `points` is not above 0 or the hint is empty.

    >>> from distsim.course.answer import number
    >>> @exercise(points=2, hint="Every worker brings a batch of its own.")
    ... def effective_batch(answer):
    ...     return number(answer, right=4 * 8)
    >>> effective_batch.judged(32).points
    2.0
    >>> print(effective_batch.judged(...).text())
    effective_batch: 0 of 2 points
      observed: no answer yet
      hint:     Every worker brings a batch of its own.
    """
    require_worth(points, hint)

    def made(function: Callable[[object], Judged]) -> Exercise:
        return Exercise(function.__name__, float(points), hint, because, function)

    return made


def exercises_in(path: Path) -> dict[str, Exercise]:
    """The exercises of a file, by name, in the file's order. Raises InputError where the file has none or is broken."""
    module = imported(path, f"exercises_of_{path.stem}", "exercises")
    found = {value.name: value for value in vars(module).values() if isinstance(value, Exercise)}
    if not found:
        raise InputError.of("exercises", str(path), "has no function under @exercise", "write one for each question")
    return found
