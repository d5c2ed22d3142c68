"""One submission graded: the results of all checks of the lab, whatever happened on the way."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distsim.errors import RunError
from distsim.grading import session
from distsim.grading.lab import Lab
from distsim.grading.result import Result
from distsim.grading.session import Session
from distsim.grading.submission import Submission

TRIES = 2  # a kernel may fail to come up on a machine that is busy


@dataclass(frozen=True)
class Grade:
    """What a submission got. path, sha256: of the file that was graded; lab_sha256: of what it was graded with."""

    student: str
    lab: str
    path: str
    sha256: str
    lab_sha256: str
    results: Sequence[Result]
    remarks: Sequence[str]

    @property
    def points(self) -> float:
        """Of all checks."""
        return round(sum(result.points for result in self.results), 2)

    @property
    def maximum(self) -> float:
        """What there was to get."""
        return sum(result.maximum for result in self.results)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "student": self.student, "lab": self.lab, "path": self.path, "sha256": self.sha256,
            "lab_sha256": self.lab_sha256, "points": self.points, "maximum": self.maximum,
            "results": [result.as_dict() for result in self.results], "remarks": list(self.remarks),
        }  # fmt: skip

    @classmethod
    def of(cls, table: dict[str, Any]) -> Grade:
        """From `as_dict`. Raises KeyError or TypeError where the table is another one."""
        results = [Result(**result) for result in table["results"]]
        names = ("student", "lab", "path", "sha256", "lab_sha256")
        return cls(**{name: table[name] for name in names}, results=results, remarks=list(table["remarks"]))


def grade(submission: Submission, lab: Lab, *, trust: bool = False, stop: threading.Event | None = None) -> Grade:
    """Runs the lab's own notebook over the submission.

    trust: whether its ranks may run without confinement. stop: see `session.run`.

    Raises RunError where the notebook did not get to its first check, or no ranks could be started: that is not the
    submission's fault, and it gets no grade then.
    """
    found: dict[str, Result] = {}
    reason = submission.missing
    if submission.content is not None:
        for _ in range(TRIES):
            ended = session.run(lab, submission.content, trust=trust, stop=stop)
            if ended.noted:
                break
        if "refused" in ended.noted:
            raise RunError(ended.noted["refused"])
        found = {table["check"]: Result(**table) for table in ended.noted.get("results", [])}
        reason = _not_reached(ended)
        if not found:
            raise RunError(
                f"{lab.key}: the notebook did not get to its first check. It ended so:\n{ended.said.strip()}"
            )
    results = [found.get(name) or check.lost(reason) for name, check in lab.checks.items()]
    return Grade(
        submission.student, lab.key, str(submission.path), submission.sha256, lab.sha256(), results, submission.remarks
    )


def _not_reached(ended: Session) -> str:
    if ended.late or "Timeout" in ended.said:
        return "the check was not over in time, or an earlier one was not"
    return "the check was not run: the notebook ended before it"
