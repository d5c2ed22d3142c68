"""A check: a function of a lab's checks.py that looks at what a submission does, and what it is worth.

from distsim.grading import Finding, check

@check(points=3, hint="Each round sends one chunk.")
def bytes_on_the_wire(testbed: Testbed) -> Finding:
    run = testbed.run("reduce", arguments=[...])
    if run.failure:
        return Finding.failed(run, expected="4096 bytes")
    return Finding.of(observed=..., expected=..., passed=..., where="rank 2")
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from distsim.errors import InputError, RunError
from distsim.grading.result import Result, cut, require_worth
from distsim.grading.trusted_file import imported, told

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed


@dataclass(frozen=True)
class Finding:
    """What a check saw. share: of the points, from 0 to 1."""

    share: float
    observed: str = ""
    expected: str = ""
    where: str = ""

    @classmethod
    def of(
        cls,
        *,
        observed: object,
        expected: object,
        passed: bool | None = None,
        share: float | None = None,
        where: str = "",
    ) -> Finding:
        """What was seen beside what was asked for, and either whether it passed or its share of the points.

        Raises ValueError where neither or both are given, or the share does not lie between 0 and 1.

        >>> Finding.of(observed=5, expected=6, passed=False, where="rank 1")
        Finding(share=0.0, observed='5', expected='6', where='rank 1')
        """
        if (passed is None) == (share is None):
            raise ValueError("a finding says either whether it passed or which share of the points it is worth")
        worth = float(bool(passed)) if share is None else float(share)
        if not 0.0 <= worth <= 1.0 or math.isnan(worth):
            raise ValueError(f"share = {worth}: must lie between 0 and 1")
        return cls(worth, cut(observed), cut(expected), cut(where))

    @classmethod
    def failed(cls, run: Run, expected: object = "a run that ends well") -> Finding:
        """Of a run that did not end well: the first cause."""
        return cls.of(observed=run.failure, expected=expected, passed=False)


@dataclass(frozen=True)
class Check:
    """A function that looks at a submission. points: what it is worth; hint: one sentence for those who lose some."""

    name: str
    points: float
    hint: str
    function: Callable[[Testbed], Finding] = field(repr=False)

    def __call__(self, testbed: Testbed) -> Finding:
        """What the function finds."""
        return self.function(testbed)

    def result(self, finding: Finding) -> Result:
        """The points for what was found."""
        points = round(self.points * finding.share, 2)
        return Result(self.name, points, self.points, finding.observed, finding.expected, finding.where, self.hint)

    def lost(self, reason: str) -> Result:
        """No points, for a reason that is no finding."""
        return Result(self.name, 0.0, self.points, cut(reason), hint=self.hint)

    def judged(self, testbed: Testbed) -> Result:
        """The result on a submission. A check that raises costs its points, and the run goes on.

        Raises RunError where no ranks can be started: that is no fault of the submission.
        """
        try:
            finding = self(testbed)
            if not isinstance(finding, Finding):
                raise TypeError(f"a check returns a Finding, not {type(finding).__name__}")
            return self.result(finding)
        except RunError:
            raise
        except Exception as error:  # noqa: BLE001 - what ranks return may surprise a check in any way
            return self.lost(f"what the ranks returned could not be judged: {told(error, 'checks.py')}")


def check(*, points: float, hint: str) -> Callable[[Callable[[Testbed], Finding]], Check]:
    """Makes a check of a function of a Testbed.

    Raises InputError where points are not above 0, or the hint is empty.

    >>> @check(points=2, hint="Add.")
    ... def sums(testbed):
    ...     return Finding.of(observed=2, expected=2, passed=True)
    >>> sums.judged(None).points
    2.0
    """
    require_worth(points, hint)

    def made(function: Callable[[Testbed], Finding]) -> Check:
        return Check(function.__name__, float(points), hint, function)

    return made


def checks_in(path: Path) -> dict[str, Check]:
    """The checks of a file, by name, in their order there. Raises InputError where it has none or is broken."""
    module = imported(path, f"checks_of_{path.parent.name}", "checks")
    found = {value.name: value for value in vars(module).values() if isinstance(value, Check)}
    if not found:
        raise InputError.of("checks", str(path), "has no function under @check", "write one for each property")
    return found
