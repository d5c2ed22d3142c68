"""The calls of a lab's notebook: checks, and the stages guess, formula, simulation and measurement.

    from distsim.grading import Notebook

    lab = Notebook("03_ring")
    guess = lab.guess("step time", 80, unit="ms")
    lab.overlay(guess=guess, formula=..., simulation=..., measurement=[1e3 * one["seconds"] for one in lab.run()])
    lab.check("bytes_on_the_wire")
    lab.total()

During grading, results are also written to a file, and checks are judged ahead. The file, the seed and the fork server
are told by `variables`, which are removed from the environment before any rank starts.
"""

from __future__ import annotations

import ast
import atexit
import json
import os
import re
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from distsim.errors import InputError, RunError
from distsim.files import write_text
from distsim.grading import four_stages
from distsim.grading.card import Points, Total, broken, card, pointer
from distsim.grading.four_stages import Values
from distsim.grading.judge import Judge, JudgesAhead, Judging
from distsim.grading.lab import ABOUT, SCENARIO, TASKS, Lab, find
from distsim.grading.nbgrader import autogrades
from distsim.grading.result import Result
from distsim.grading.variables import RESULTS_VARIABLE, SEED_VARIABLE, SERVER_VARIABLE
from distsim.scenario import Scenario

if TYPE_CHECKING:
    from distsim.figures import Captioned

JUDGES_AHEAD = 2  # while grading; ranks wait for each other's small messages, so more than one run fits on two cores
GUESSES = "guesses.json"
LINE = re.compile(rf"\({re.escape(TASKS)}:(\d+)[^()]*\)$")


class Notebook:
    """The lab of a notebook: the lab in the current folder, or else the lab called `name`.

    Raises InputError if there is no such lab.
    """

    def __init__(self, name: str, folder: Path | None = None) -> None:
        here = folder or Path.cwd()
        self.lab = Lab.at(here, name) if (here / ABOUT).is_file() else find(name)
        file = os.environ.pop(RESULTS_VARIABLE, None)
        self._file = Path(file) if file else None
        seed = os.environ.pop(SEED_VARIABLE, None)
        self._seed = int(seed) if seed else self.lab.seed()
        server = os.environ.pop(SERVER_VARIABLE, None)
        judges = [
            Judge(self.lab.folder, seed=self._seed, server=Path(server) if server else None)
            for _ in range(JUDGES_AHEAD if file else 1)
        ]
        self._judge: Judging = JudgesAhead(judges, self.lab.checks.values()) if file else judges[0]
        self._results: dict[str, Result] = {}
        self._refused: dict[str, str] = {}  # why a check could not be run
        self._broken: tuple[str, str] = ("", "")  # the check whose card told why tasks.py cannot be imported, and why
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the processes of the checks. The next check starts new processes."""
        self._judge.close()

    def __dir__(self) -> list[str]:
        return ["check", "close", "guess", "lab", "overlay", "run", "scenario", "total"]

    @property
    def scenario(self) -> Scenario:
        """The lab's scenario.toml."""
        return Scenario.load(self.lab.folder / SCENARIO)

    def check(self, name: str) -> Points:
        """Runs one check on tasks.py and returns the points, which a notebook shows as a card.

        If tasks.py cannot be imported, one card says why; the cards of other checks refer to it.

        Raises InputError if the lab has no such check, RunError if no ranks can be started here.
        """
        found = self.lab.checks.get(name)
        if found is None:
            raise InputError.of(
                "check", name, f"is no check of {self.lab.key}", f"take one of {', '.join(self.lab.checks)}"
            )
        try:
            result = self._judge.judged(found)
        except RunError as error:
            self._refused[name] = str(error)
            self._note()
            raise
        self._results[name] = result
        self._refused.pop(name, None)
        self._note()
        return self._shown(result)

    def total(self) -> Total:
        """The sum of the points of the checks that ran, out of those of all checks."""
        maxima = {check.name: check.points for check in self.lab.checks.values()}
        return Total(f"Lab {self.lab.number}", self._results, maxima)

    def _shown(self, result: Result) -> Points:
        fault = result.import_fault
        if not fault:
            self._broken = ("", "")  # a card that told a fault may say something else now
            return card(result, self.total())
        told, why = self._broken
        if why == fault and told != result.check:
            return pointer(result, self.total(), told)
        self._broken = (result.check, fault)
        return broken(result, self.total(), self._line(fault))

    def _line(self, fault: str) -> str:
        """The line of tasks.py that a fault names, with its number; empty if there is none."""
        named = LINE.search(fault)
        lines = (self.lab.folder / TASKS).read_text("utf-8", errors="replace").splitlines() if named else []
        number = int(named[1]) if named else 0
        return f"line {number}: {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""

    def _note(self) -> None:
        """Writes the results so far. A check that could not be run is told as well: it is not the student's fault."""
        if self._file is not None:
            table: dict[str, Any] = {"results": [one.as_dict() for one in self._results.values()]}
            if self._refused:
                table["refused"] = next(iter(self._refused.values()))
            write_text(self._file, json.dumps(table))

    def guess(self, quantity: str, value: float | EllipsisType | None, unit: str = "") -> float | None:
        """Saves your guess and returns it. The first guess counts.

        Without a value, it prints a request and returns None. Raises InputError if the value is not a finite number.
        """
        path = self.lab.folder / GUESSES
        kept: dict[str, float] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        if quantity not in kept:
            if value is None or value is ...:
                print(four_stages.asking(quantity, unit))
                return None
            kept[quantity] = four_stages.guessed(quantity, value)
            write_text(path, json.dumps(kept, indent=2))
        first = kept[quantity]
        later = "" if value in (None, ..., first) else f" (the first one counts; remove {GUESSES} to start anew)"
        print(f"Your guess of the {quantity}: {first:g} {unit}".rstrip() + later)
        return first

    def run(self, ranks: int | None = None, *, emulate: bool = False, **arguments: Any) -> list[Any]:
        """Runs your code for real, under torchrun. Returns the results of `real` in the lab's ranks.py, by rank.

        emulate: use links as in the lab's scenario, if this machine can emulate them.

        If the run fails or the links cannot be emulated, it prints the cause and returns an empty list.
        Parts that need a function that is still to be written are left out. While nbgrader grades, nothing runs.
        """
        from distsim.grading.real import run, still_unwritten

        if autogrades():
            print("not run while nbgrader grades")
            return []
        if fault := self._no_python():
            print(f"not run: {fault}")
            return []
        try:
            found = run(self.lab, ranks=ranks, arguments=arguments, emulate=emulate)
            for one in still_unwritten(self.lab):
                print(one)
            return found
        except InputError as error:
            if not emulate:
                raise
            print(error)
            return []
        except RunError as error:
            print(_brief(str(error)))
            return []

    def _no_python(self) -> str:
        """Why tasks.py is no Python, or where a card has told it; empty if it is Python, or is missing."""
        path = self.lab.folder / TASKS
        try:
            ast.parse(path.read_bytes() if path.is_file() else b"")
        except (SyntaxError, ValueError) as error:
            number, message = getattr(error, "lineno", None), getattr(error, "msg", error)
            told, why = self._broken
            if why == f"{type(error).__name__}: {message} ({TASKS}:{number})":  # as ranks report it
                return f"{TASKS} cannot be imported; the card of {told.replace('_', ' ')} says why"
            return f"{TASKS}{f', line {number}' if number else ''}: {message}"
        return ""

    def overlay(
        self,
        *,
        guess: Values,
        formula: Values = None,
        simulation: Values = None,
        measurement: Values = None,
        unit: str = "ms",
        quantity: str = "step time",
    ) -> Captioned:
        """One figure of all stages, in `unit`; an empty list is no value. Without a guess nothing is drawn."""
        return four_stages.overlay(guess, formula, simulation, measurement, unit, quantity)


def _brief(error: str) -> str:
    """The failed rank and the error of its traceback, without the stack frames."""
    first, *rest = error.splitlines()
    return f"{first}\n{rest[-1].strip()}" if rest and rest[0].startswith("Traceback") else error
