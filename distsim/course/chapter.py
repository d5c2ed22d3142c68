"""The functions for a chapter's notebook: guess, compare, check, record.

from distsim.course import Chapter

chapter = Chapter("02")
guess = chapter.guess("step time", 55, unit="ms")
chapter.compare(guess=guess, formula=..., simulation=..., measurement=[...], unit="ms", quantity="step time")
chapter.check("effective_batch", effective_batch)
chapter.total()
chapter.record()

Without a number in place of `...`, `guess` ends the cell, and so a run of all cells: what comes after tells the answer.
Where nobody is there to guess, as in a test, `RECORDED` in the environment takes the guesses of a file.
"""

from __future__ import annotations

import os
import re
import tomllib
from functools import cached_property
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING

from distsim.course.exercise import Exercise, exercises_in
from distsim.course.folder import EXERCISES, course_folder, number_of
from distsim.course.record import Compared, Record
from distsim.errors import InputError
from distsim.grading.card import Points, Total, card
from distsim.grading.four_stages import Values, asking, guessed, listed, overlay
from distsim.grading.result import Result

if TYPE_CHECKING:
    from distsim.figures import Captioned

NUMBER = re.compile(r"\d\d[b-z]?")  # with a letter from the second part on
RECORDED = "DISTSIM_RECORDED_GUESSES"  # set: `...` stands for the guess in RECORDED_GUESSES
RECORDED_GUESSES = "recorded_guesses.toml"  # in course/exercises: by chapter and quantity


class MissingGuessError(InputError):
    """A guess is still to be written."""


class Chapter:
    """A chapter for its notebook, by its number, such as "02", or "04b" for the second part of chapter 04.

    folder: the course's. Default: the course around the current folder, or else the package's own.

    Raises InputError where the course has no such chapter.
    """

    def __init__(self, number: str, folder: Path | None = None) -> None:
        folder = folder or course_folder()
        found = sorted((folder / EXERCISES).glob("[0-9][0-9]*_*.py"))
        mine = [path for path in found if NUMBER.fullmatch(str(number)) and path.name.startswith(f"{number}_")]
        if len(mine) != 1:
            known = ", ".join(f'"{number_of(path)}"' for path in found) or "none there yet"
            reason = "names no chapter of the course" if not mine else f"names {len(mine)} chapters"
            raise InputError.of("chapter", number, reason, f"take one of {known}")
        self.number, self.name = str(number), mine[0].stem
        self._file = mine[0]
        self._is_recorded = bool(os.environ.get(RECORDED))
        self._record = Record() if self._is_recorded else Record.of_learner()
        self._guesses: dict[str, float] = {}
        self._shown: set[str] = set()
        self._results: dict[str, Result] = {}

    def __dir__(self) -> list[str]:
        return ["check", "compare", "exercises", "guess", "name", "number", "record", "total"]

    def __repr__(self) -> str:
        return f"Chapter({self.number!r})"

    @cached_property
    def exercises(self) -> dict[str, Exercise]:
        """The chapter's exercises, by name. Raises InputError where their file is broken."""
        return exercises_in(self._file)

    def guess(self, quantity: str, value: float | EllipsisType | None, *decimals: int, unit: str = "") -> float:
        """Keeps, prints and returns your guess. You may change the guess until `compare` has shown the answers.

        decimals: what follows where a number is written with a comma. Raises MissingGuessError without a value, which
        is `...` or None, and InputError where it is no finite number.
        """
        if decimals:
            written = ",".join(map(str, [value, *decimals]))
            raise InputError.of(f"guess of the {quantity}", written, "has a comma", "write a point, as in 55.5")
        kept, whose = self._guesses.get(quantity), "Your"
        if value is None or value is ...:
            if kept is None and self._is_recorded:
                kept, whose = self._recorded(quantity), "The recorded"
            if kept is None:
                raise MissingGuessError(f"{asking(quantity, unit)} Then run the cell again.")
            value = kept
        number = guessed(quantity, value)
        if kept is None or quantity not in self._shown:
            kept = number
        self._guesses[quantity] = kept
        late = number != kept
        after = " (made before the answers were shown: the first guess counts)" if late else ""
        print(f"{whose} guess of the {quantity}: {kept:g} {unit}".rstrip() + after)
        return kept

    def _recorded(self, quantity: str) -> float:
        path = self._file.with_name(RECORDED_GUESSES)
        table = tomllib.loads(path.read_text("utf-8")).get(self.number, {})
        if quantity not in table:
            raise InputError.of("recorded guess of", quantity, f"is not in {path}", "write it there")
        return guessed(quantity, table[quantity])

    def compare(
        self,
        *,
        guess: Values,
        formula: Values = None,
        simulation: Values = None,
        measurement: Values = None,
        unit: str = "ms",
        quantity: str = "step time",
        reported: bool = False,
    ) -> Captioned:
        """Draws all four in one figure, in `unit`, with the error of each against the measurement.

        A list holds repeats; an empty list means not there yet. Without a guess nothing is shown. The first comparison
        that has a measurement goes into the record. reported: whether somebody else reports the measurement.
        """
        drawn = overlay(guess, formula, simulation, measurement, unit, quantity, reported=reported)
        if guessed_values := listed(guess):
            self._shown.add(quantity)
            stages = (tuple(listed(values)) for values in (formula, simulation, measurement))
            self._keep(Compared(self.number, quantity, unit, guessed_values[0], *stages))
        return drawn

    def _keep(self, compared: Compared) -> None:
        """Puts a comparison into the record, and tells where that is not what counts. The figure is shown anyway."""
        try:
            first = self._record.keep(compared)
        except InputError as error:
            print(f"Not in your record of guesses. {error}")
            return
        if first.guess != compared.guess:
            print(f"Your record keeps your first guess of the {first.quantity}: {first.guess:g} {first.unit}".rstrip())

    def record(self) -> Captioned:
        """Draws what you guessed and compared in this chapter and, in your copy of the course, in all others.

        The first comparison of each quantity counts. Raises InputError where the copy's file is no record.
        """
        return self._record.drawn()

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
