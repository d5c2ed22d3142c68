"""Grades the submissions of a class, several at once. Each grade is saved at once, so that a second run resumes.

OUT/results/ada.json     the hashes of the submission and of the lab's files, and every result
OUT/feedback/ada.md      for the student
OUT/gradebook.csv        for the instructor; never half written
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from distsim import files
from distsim.errors import InputError, RunError
from distsim.files import make_folder, write_text
from distsim.grading.feedback import feedback
from distsim.grading.grade import Grade, grade
from distsim.grading.gradebook import gradebook
from distsim.grading.lab import Lab
from distsim.grading.notebook_run import StoppedError
from distsim.grading.shared_fork_server import shared_fork_server
from distsim.grading.submission import Submission
from distsim.grading.trust import check_confined
from distsim.progress import Phase, Report
from distsim.testbed import slow_imports

RESULTS, FEEDBACK, GRADEBOOK = "results", "feedback", "gradebook.csv"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
MOST_MEGABYTES = 4


@dataclass(frozen=True)
class Graded:
    """The grades of a class. again: students graded by an earlier run; failed: student and cause."""

    grades: Sequence[Grade]
    again: Sequence[str]
    failed: Sequence[tuple[str, str]]


def grade_all(
    submissions: Sequence[Submission],
    lab: Lab,
    out: Path,
    *,
    jobs: int = 1,
    seed: int | None = None,
    trust: bool = False,
    report: Report,
) -> Graded:
    """Grades the submissions. A grade in `out` is reused if submission, lab and seed are the same.

    jobs: submissions graded at once. seed: of the inputs that checks draw, the same for all; default `Lab.seed`. trust:
    whether ranks may run without confinement. report: called with the `Phase`, which counts submissions. Finished
    grades stay in `out`, even after an error.

    Raises InputError if this machine cannot confine ranks and `trust` is false, or if `out` cannot be written.
    """
    check_confined(trust)
    make(out)
    lab_hash, seed = lab.sha256(), lab.seed() if seed is None else seed
    grades: dict[str, Grade] = {}
    for one in submissions:
        if (kept := _kept(out, one, lab, lab_hash, seed)) is not None:
            grades[one.student] = kept
    again = list(grades)
    failed: dict[str, str] = {}
    stop = threading.Event()
    imports = slow_imports.needed(lab.contents_for_ranks())
    with shared_fork_server(imports) as server, ThreadPoolExecutor(jobs, thread_name_prefix="grading") as pool:
        waiting = {
            pool.submit(grade, one, lab, seed=seed, trust=trust, server=server, stop=stop): one
            for one in submissions
            if one.student not in grades
        }
        try:
            report(Phase.counted("submission", len(grades), len(submissions)))
            for future in as_completed(waiting):
                _keep(future, waiting[future], out, grades, failed)
                report(Phase.counted("submission", len(grades) + len(failed), len(submissions)))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            for future, one in waiting.items():  # grades that finished while an error ended the loop
                if future.done() and not future.cancelled() and one.student not in grades | failed:
                    _keep(future, one, out, grades, failed)
            found = [grades[one.student] for one in submissions if one.student in grades]
            for graded in found:
                _write_feedback(out, graded)
            write_text(out / GRADEBOOK, gradebook(found, lab))
    return Graded(found, again, list(failed.items()))


def _keep(future: Future[Grade], one: Submission, out: Path, grades: dict[str, Grade], failed: dict[str, str]) -> None:
    try:
        found = future.result()
    except StoppedError:
        return
    except RunError as error:
        failed[one.student] = str(error)
        return
    grades[one.student] = found
    write_text(_file(out / RESULTS, one.student, ".json"), json.dumps(found.as_dict(), indent=2))


def _kept(out: Path, one: Submission, lab: Lab, lab_hash: str, seed: int) -> Grade | None:
    """The grade that an earlier run saved for the same submission, lab and seed.

    Remarks, path and name are from this run.
    """
    try:
        found = Grade.of(json.loads(files.read(_file(out / RESULTS, one.student, ".json"), MOST_MEGABYTES)))
    except (OSError, ValueError, KeyError, TypeError):  # no file, or not a grade: graded again
        return None
    saved = (found.student, found.lab, found.sha256, found.lab_sha256, found.seed)
    if (
        saved != (one.student, lab.key, one.sha256, lab_hash, seed) or not one.sha256
    ):  # a submission without a readable file is graded again, at no cost
        return None
    return replace(found, path=str(one.path), remarks=list(one.remarks), name=one.name)


def _write_feedback(out: Path, found: Grade) -> None:
    path = feedback_file(out, found.student)
    text = feedback(found)
    if not path.is_file() or path.read_text("utf-8") != text:
        write_text(path, text)


def make(out: Path) -> None:
    """Makes the folders in `out`. Raises InputError if they cannot be made."""
    for name in (RESULTS, FEEDBACK):
        make_folder(out / name, "--out")


def feedback_file(out: Path, student: str) -> Path:
    """The feedback page of one student."""
    return _file(out / FEEDBACK, student, ".md")


def _file(folder: Path, student: str, suffix: str) -> Path:
    """A separate file for each student, with any characters in the name.

    >>> _file(Path("out"), "ada", ".md").name, _file(Path("out"), "a|b", ".md").name
    ('ada.md', 'a_b-0eab8a0a.md')
    """
    if PLAIN.fullmatch(student):
        return folder / f"{student}{suffix}"
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", student)[:60].lstrip(".")
    return folder / f"{plain}-{hashlib.sha256(student.encode()).hexdigest()[:8]}{suffix}"


def check_apart(out: Path, folder: Path) -> None:
    """Raises InputError if `out` lies in the folder of the submissions."""
    inside, outer = os.path.realpath(out), os.path.realpath(folder)
    if os.path.commonpath([inside, outer]) == outer:
        rule = "lies in the folder of the submissions"
        raise InputError.of("--out", str(out), rule, "name a folder outside of it")
