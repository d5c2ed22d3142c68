"""Grades one submission: a result for every check of the lab, even if the notebook failed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distsim.errors import RunError
from distsim.grading import notebook_run
from distsim.grading.lab import Lab
from distsim.grading.notebook_run import NotebookRun
from distsim.grading.result import Result
from distsim.grading.shared_fork_server import shared_fork_server
from distsim.grading.submission import Submission
from distsim.progress import Report
from distsim.testbed import slow_imports

TRIES = 2  # a kernel may fail to start on a busy machine


@dataclass(frozen=True)
class Grade:
    """The grade of a submission. path, sha256: of the graded file; lab_sha256: of the lab's files; seed: of inputs.

    name: the person's, if it is not the key `student`.
    """

    student: str
    lab: str
    path: str
    sha256: str
    lab_sha256: str
    seed: int
    results: Sequence[Result]
    remarks: Sequence[str]
    name: str = ""

    @property
    def points(self) -> float:
        """The sum over all checks."""
        return round(sum(result.points for result in self.results), 2)

    @property
    def maximum(self) -> float:
        """The most points that the checks give together."""
        return sum(result.maximum for result in self.results)

    def as_dict(self) -> dict[str, Any]:
        """The grade as a table for JSON."""
        return {
            "student": self.student, "lab": self.lab, "path": self.path, "sha256": self.sha256,
            "lab_sha256": self.lab_sha256, "seed": self.seed, "points": self.points, "maximum": self.maximum,
            "results": [result.as_dict() for result in self.results], "remarks": list(self.remarks), "name": self.name,
        }  # fmt: skip

    @classmethod
    def of(cls, table: dict[str, Any]) -> Grade:
        """The grade from a table of `as_dict`. Raises KeyError or TypeError if the table has other keys."""
        results = [Result(**result) for result in table["results"]]
        names = ("student", "lab", "path", "sha256", "lab_sha256", "seed", "name")
        return cls(**{name: table[name] for name in names}, results=results, remarks=list(table["remarks"]))


def grade(
    submission: Submission,
    lab: Lab,
    *,
    seed: int | None = None,
    trust: bool = False,
    server: Path | None = None,
    stop: threading.Event | None = None,
    progress: Report | None = None,
) -> Grade:
    """Runs the lab's own notebook with the submission's tasks.py.

    seed: of the inputs that the checks draw; default `Lab.seed`. The same submission gets the same inputs from the same
    seed. trust: whether its ranks may run without confinement. server: where a fork server listens; default: one for
    this grade alone. stop, progress: see `notebook_run.run`.

    Raises RunError if the notebook did not reach its first check, or if no ranks could be started. Neither is the
    fault of the submission, so the submission gets no grade.
    """
    seed = lab.seed() if seed is None else seed
    found: dict[str, Result] = {}
    reason = submission.missing
    if submission.content is not None:
        imports = slow_imports.needed([*lab.contents_for_ranks(), submission.content])
        for _ in range(TRIES):
            with nullcontext(server) if server else shared_fork_server(imports) as at:
                ended = notebook_run.run(
                    lab, submission.content, seed=seed, server=at, trust=trust, stop=stop, progress=progress
                )
            if ended.report:
                break
        if "refused" in ended.report:
            raise RunError(ended.report["refused"])
        found = {table["check"]: Result(**table) for table in ended.report.get("results", [])}
        reason = _not_reached(ended)
        if not found:
            raise RunError(
                f"{lab.key}: the notebook did not reach its first check. Its last output:\n{ended.output.strip()}"
            )
    results = [found.get(name) or check.lost(reason) for name, check in lab.checks.items()]
    return Grade(
        submission.student,
        lab.key,
        str(submission.path),
        submission.sha256,
        lab.sha256(),
        seed,
        results,
        submission.remarks,
        submission.name,
    )


def _not_reached(ended: NotebookRun) -> str:
    if ended.late or "Timeout" in ended.output:
        return "this check or an earlier check did not end in time"
    return "the check was not run: the notebook ended before it"
