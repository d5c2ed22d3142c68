"""The result of one check: its points, and the reasons for lost points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from distsim.errors import InputError

UNWRITTEN = "NotImplementedError: write "  # the start of the error of a stub's function
UNTOUCHED = "no answer yet"  # observed of an exercise without an answer
NOT_IMPORTED = "tasks.py cannot be imported: "  # stands before the error that a rank met when it imported the file
MOST_CHARACTERS = 2000  # of a text that may hold what a submission printed
REASONS = ("observed", "expected", "where", "hint")


@dataclass(frozen=True)
class Result:
    """One check of one submission.

    points: earned, of `maximum`. observed, expected: the values found and required, as text.
    where: the rank, step or line. hint: for the student. how: more than the hint, for a student who asks.
    """

    check: str
    points: float
    maximum: float
    observed: str = ""
    expected: str = ""
    where: str = ""
    hint: str = ""
    how: str = ""

    @property
    def full(self) -> bool:
        """Whether no points were lost."""
        return self.points >= self.maximum

    @property
    def reasons(self) -> dict[str, str]:
        """The reasons for lost points, by name.

        A function that is still to be written, or a file that cannot be imported, is the only reason.

        >>> Result("sums", 0.0, 2.0, "rank 0: NotImplementedError: write sums: Adds.", "6.0", hint="Add.").reasons
        {'observed': 'rank 0: NotImplementedError: write sums: Adds.'}
        """
        if self.full:
            return {}
        alone = not self.points and (UNWRITTEN in self.observed or bool(self.import_fault))
        return {name: text for name in (("observed",) if alone else REASONS) if (text := getattr(self, name))}

    @property
    def open(self) -> bool:
        """Whether there is nothing to judge yet: no answer, or a function that is still to be written."""
        return not self.points and (self.observed == UNTOUCHED or UNWRITTEN in self.observed)

    @property
    def import_fault(self) -> str:
        """The error that kept tasks.py from being imported; empty if there was none.

        >>> Result("sums", 0.0, 2.0, "rank 1: tasks.py cannot be imported: TabError: mixed (tasks.py:3)").import_fault
        'TabError: mixed (tasks.py:3)'
        """
        return "" if self.points else self.observed.partition(NOT_IMPORTED)[2]

    def as_dict(self) -> dict[str, Any]:
        """The result as a table for JSON; `Result(**table)` restores the result."""
        return asdict(self)

    def text(self) -> str:
        """The lines that a check cell prints.

        >>> print(Result("sums", 0.0, 2.0, observed="3.0", expected="6.0", where="rank 1", hint="Add.").text())
        sums: 0 of 2 points
          observed: 3.0
          expected: 6.0
          where:    rank 1
          hint:     Add.
        """
        lines = [f"{self.check}: {shown(self.points)} of {shown(self.maximum)} points"]
        lines += [f"  {name + ':':<9} {_indented(reason)}" for name, reason in self.reasons.items()]
        return "\n".join(lines)


def told_once(results: Iterable[Result]) -> list[Result]:
    """The results that lost points; of those that lost them to one fault of importing tasks.py, only the first."""
    told: dict[str, Result] = {}
    for result in results:
        if not result.full:
            told.setdefault(result.import_fault or f"check {result.check}", result)
    return list(told.values())


def not_run(fault: str, results: Sequence[Result]) -> list[str]:
    """The checks that this fault of importing tasks.py kept from running; empty if it was all of them.

    >>> fault = "rank 0: tasks.py cannot be imported: TabError: mixed (tasks.py:3)"
    >>> not_run("TabError: mixed (tasks.py:3)", [Result("sums", 0.0, 2.0, fault), Result("shares", 1.0, 1.0)])
    ['sums']
    """
    names = [result.check for result in results if result.import_fault == fault]
    return names if len(names) < len(results) else []


def require_worth(points: float, hint: str) -> None:
    """Raises InputError if the points are not above 0, or if the hint is empty."""
    if not points > 0 or not math.isfinite(points):
        raise InputError.of("points", points, "must be a number above 0", "write 2")
    if not hint.strip():
        raise InputError.of("hint", hint, "must not be empty", "write one sentence that helps")


def shown(points: float) -> str:
    """Points without trailing zeros.

    >>> shown(3.0), shown(1.25)
    ('3', '1.25')
    """
    return f"{points:.2f}".rstrip("0").rstrip(".")


def cut(text: object) -> str:
    """The text without control characters; the middle of a long text is left out.

    >>> cut("rank 1\\x1b[2J"), len(cut("x" * 10_000)) <= MOST_CHARACTERS
    ('rank 1\\\\x1b[2J', True)
    """
    whole = str(text)
    if len(whole) > MOST_CHARACTERS:
        half = (MOST_CHARACTERS - 40) // 2
        whole = f"{whole[:half]} ... ({len(whole) - 2 * half} more) ... {whole[-half:]}"
    printed = "".join(letter if letter.isprintable() or letter == "\n" else _escaped(letter) for letter in whole)
    return printed[:MOST_CHARACTERS]


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _indented(text: str) -> str:
    return text.replace("\n", "\n            ")
