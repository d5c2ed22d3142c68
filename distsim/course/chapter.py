"""The functions for a chapter's notebook: guess, compare, check.

from distsim.course import Chapter

chapter = Chapter("02")
guess = chapter.guess("step time", 55, unit="ms")
chapter.compare(guess=guess, formula=..., simulation=..., measurement=[...], unit="ms", quantity="step time")
chapter.check("effective_batch", effective_batch)
chapter.total()
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING

from distsim.course.exercise import Exercise, exercises_in
from distsim.course.folder import EXERCISES, course_folder
from distsim.errors import InputError
from distsim.grading.card import Points, Total, card
from distsim.grading.four_stages import Values, asking, guessed, overlay
from distsim.grading.result import Result

if TYPE_CHECKING:
    from distsim.figures import Captioned

NUMBER = re.compile(r"\d\d")


class Chapter:
    """A chapter for its notebook, by its number, such as "02".

    folder: the course's. Default: the course around the current folder, or else the package's own.

    Raises InputError where the course has no such chapter.
    """

    def __init__(self, number: str, folder: Path | None = None) -> None:
        folder = folder or course_folder()
        found = sorted((folder / EXERCISES).glob("[0-9][0-9]_*.py"))
        mine = [path for path in found if NUMBER.fullmatch(str(number)) and path.name.startswith(f"{number}_")]
        if len(mine) != 1:
            known = ", ".join(f'"{path.name[:2]}"' for path in found) or "none there yet"
            reason = "names no chapter of the course" if not mine else f"names {len(mine)} chapters"
            raise InputError.of("chapter", number, reason, f"take one of {known}")
        self.number, self.name = str(number), mine[0].stem
        self._file = mine[0]
        self._guesses: dict[str, float] = {}
        self._shown: set[str] = set()
        self._results: dict[str, Result] = {}

    def __dir__(self) -> list[str]:
        return ["check", "compare", "exercises", "guess", "name", "number", "total"]

    def __repr__(self) -> str:
        return f"Chapter({self.number!r})"

    @cached_property
    def exercises(self) -> dict[str, Exercise]:
        """The chapter's exercises, by name. Raises InputError where their file is broken."""
        return exercises_in(self._file)

    def guess(self, quantity: str, value: float | EllipsisType | None, unit: str = "") -> float | None:
        """Keeps, prints and returns your guess. You may change the guess until `compare` has shown the answers.

        Without a value, asks for a guess and returns None. Raises InputError where the value is no finite number.
        """
        kept = self._guesses.get(quantity)
        if value is None or value is ...:
            if kept is None:
                print(asking(quantity, unit))
                return None
            value = kept
        number = guessed(quantity, value)
        if kept is None or quantity not in self._shown:
            kept = self._guesses[quantity] = number
        late = number != kept
        after = " (made before the answers were shown; restart the kernel to start anew)" if late else ""
        print(f"Your guess of the {quantity}: {kept:g} {unit}".rstrip() + after)
        return kept

    def compare(
        self,
        *,
        guess: Values,
        formula: Values = None,
        simulation: Values = None,
        measurement: Values = None,
        unit: str = "ms",
        quantity: str = "step time",
    ) -> Captioned:
        """Draws all four in one figure, in `unit`, with the error of each against the measurement.

        A list holds repeats; an empty list means not there yet. Without a guess nothing is shown.
        """
        drawn = overlay(guess, formula, simulation, measurement, unit, quantity)
        if guess is not None:
            self._shown.add(quantity)
        return drawn

    def check(self, name: str, answer: object) -> Points:
        """Judges an answer and returns the points, which a notebook shows as a card.

        Raises InputError only where the chapter has no such exercise.
        """
        found = self.exercises.get(name)
        if found is None:
            rule = f"is no exercise of chapter {self.number}"
            raise InputError.of("exercise", name, rule, f"take one of {', '.join(self.exercises)}")
        result = self._results[name] = found.judged(answer)
        return card(result, self.total(), found.because)

    def total(self) -> Total:
        """The sum of the points of the checks that ran, out of those of all exercises."""
        maxima = {exercise.name: exercise.points for exercise in self.exercises.values()}
        return Total(f"Chapter {self.number}", self._results, maxima)
