"""A check: a function in a lab's checks.py that judges a submission, and the points that it gives.

from distsim.grading import Finding, check

@check(points=3, hint="Count the rounds.", how="Each round sends one chunk: 2 (N - 1) in all.")
def bytes_on_the_wire(testbed: Testbed) -> Finding:
    sizes = testbed.rng.integers(1, 100, 3)
    run = testbed.run("reduce", arguments=[...])
    if run.failure:
        return Finding.failed(run, expected="4096 bytes")
    return Finding.of(observed=..., expected=..., passed=..., where="rank 2")

A check draws all its inputs from `testbed.rng`, so a seed always gives a submission the same inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from distsim.errors import InputError, RunError
from distsim.grading.module_from_path import error_with_line, imported
from distsim.grading.result import Result, cut, require_worth

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed


@dataclass(frozen=True)
class Finding:
    """The finding of a check. share: the part of the points that is earned, from 0 to 1.

    hint: in place of the check's, where the fault is none that the check asks for. The check's `how` is then left out.
    """

    share: float
    observed: str = ""
    expected: str = ""
    where: str = ""
    hint: str = ""

    @classmethod
    def of(
        cls,
        *,
        observed: object,
        expected: object,
        passed: bool | None = None,
        share: float | None = None,
        where: str = "",
        hint: str = "",
    ) -> Finding:
        """A finding from the observed and the expected value, with either `passed` or `share`.

        Raises ValueError if neither or both are given, or if the share does not lie between 0 and 1.

        >>> Finding.of(observed=5, expected=6, passed=False, where="rank 1")
        Finding(share=0.0, observed='5', expected='6', where='rank 1', hint='')
        """
        if (passed is None) == (share is None):
            raise ValueError("a finding needs either passed= or share=, not both. Cure: write passed=True")
        worth = float(bool(passed)) if share is None else float(share)
        if not 0.0 <= worth <= 1.0 or math.isnan(worth):
            raise ValueError(f"share = {worth}: must lie between 0 and 1. Cure: write 0.5")
        return cls(worth, cut(observed), cut(expected), cut(where), hint)

    @classmethod
    def failed(cls, run: Run, expected: object = "a run that ends well") -> Finding:
        """The finding for a run that failed. It names the first cause."""
        return cls.of(observed=run.failure, expected=expected, passed=False)


@dataclass(frozen=True)
class Check:
    """A function that judges a submission. points: the most it gives.

    For students who lose some, hint: what to look at, in one sentence; how: the way to do it, for who asks for more.
    """

    name: str
    points: float
    hint: str
    function: Callable[[Testbed], Finding] = field(repr=False)
    how: str = ""

    def __call__(self, testbed: Testbed) -> Finding:
        """The finding of the function."""
        return self.function(testbed)

    def result(self, finding: Finding) -> Result:
        """The result with the points for a finding."""
        points = round(self.points * finding.share, 2)
        hints = (finding.hint, "") if finding.hint else (self.hint, self.how)
        told = (finding.observed, finding.expected, finding.where, *hints)
        return Result(self.name, points, self.points, *told)

    def lost(self, reason: str) -> Result:
        """A result without points, for a submission that the check could not judge."""
        return Result(self.name, 0.0, self.points, cut(reason), hint=self.hint, how=self.how)

    def judged(self, testbed: Testbed) -> Result:
        """The result for a submission. If the check raises an error, its points are lost and grading continues.

        The check draws from `testbed.rng`, which is set anew here, so no other check moves its draws.

        Raises RunError if no ranks can be started, since that is not the fault of the submission.
        """
        testbed.draw_for(self.name)
        try:
            finding = self(testbed)
            if not isinstance(finding, Finding):
                raise TypeError(f"a check returns a Finding, not {type(finding).__name__}")
            return self.result(finding)
        except RunError:
            raise
        except Exception as error:  # noqa: BLE001 - ranks may return any value, so a check may raise any error
            return self.lost(f"what the ranks returned could not be judged: {error_with_line(error, 'checks.py')}")


def check(*, points: float, hint: str, how: str = "") -> Callable[[Callable[[Testbed], Finding]], Check]:
    """Makes a check from a function that takes a Testbed.

    Raises InputError if the points are not above 0, or if the hint is empty.

    >>> from distsim.testbed import Testbed
    >>> @check(points=2, hint="Add.")
    ... def sums(testbed):
    ...     return Finding.of(observed=2, expected=2, passed=True)
    >>> sums.judged(Testbed(Path())).points
    2.0
    """
    require_worth(points, hint)

    def made(function: Callable[[Testbed], Finding]) -> Check:
        return Check(function.__name__, float(points), hint, function, how)

    return made


def checks_in(path: Path) -> dict[str, Check]:
    """The checks in a file by name, in file order. Raises InputError if the file has none or cannot be imported."""
    module = imported(path, f"checks_of_{path.parent.name}", "checks")
    found = {value.name: value for value in vars(module).values() if isinstance(value, Check)}
    if not found:
        raise InputError.of("checks", str(path), "has no function under @check", "write one for each property")
    return found
