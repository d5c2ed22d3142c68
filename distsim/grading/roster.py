"""All submissions of a folder: several at once, each kept as soon as it is graded, so that a second run goes on.

OUT/results/ada.json     what was graded (its hash), with what (the hash of the lab's files), and every result
OUT/feedback/ada.md      for the student
OUT/gradebook.csv        for the instructor; always whole
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
from distsim.files import write_text
from distsim.grading.confinement import check_confined
from distsim.grading.feedback import feedback
from distsim.grading.grade import Grade, grade
from distsim.grading.gradebook import gradebook
from distsim.grading.lab import Lab
from distsim.grading.session import StoppedError
from distsim.grading.submission import Submission
from distsim.progress import Report

RESULTS, FEEDBACK, GRADEBOOK = "results", "feedback", "gradebook.csv"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
MOST_MEGABYTES = 4


@dataclass(frozen=True)
class Graded:
    """What a run over a folder gave. again: whose results an earlier run had kept; failed: student and cause."""

    grades: Sequence[Grade]
    again: Sequence[str]
    failed: Sequence[tuple[str, str]]


def grade_all(
    submissions: Sequence[Submission], lab: Lab, out: Path, *, jobs: int = 1, trust: bool = False, report: Report
) -> Graded:
    """Grades all that `out` has no grade of yet: none of these very bytes by these very files of the lab.

    jobs: how many at once. trust: whether ranks may run without confinement. report: told (graded, of how many).
    What was graded is kept in `out` however this ends.

    Raises InputError where this machine cannot confine ranks and `trust` is not given, or `out` cannot be written.
    """
    check_confined(trust)
    make(out)
    lab_hash = lab.sha256()
    grades: dict[str, Grade] = {}
    for one in submissions:
        if (kept := _kept(out, one, lab, lab_hash)) is not None:
            grades[one.student] = kept
    again = list(grades)
    failed: dict[str, str] = {}
    stop = threading.Event()
    with ThreadPoolExecutor(jobs, thread_name_prefix="grading") as pool:
        waiting = {
            pool.submit(grade, one, lab, trust=trust, stop=stop): one
            for one in submissions
            if one.student not in grades
        }
        try:
            report(len(grades), len(submissions))
            for future in as_completed(waiting):
                _keep(future, waiting[future], out, grades, failed)
                report(len(grades) + len(failed), len(submissions))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            for future, one in waiting.items():  # those that ended beside what ended this
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


def _kept(out: Path, one: Submission, lab: Lab, lab_hash: str) -> Grade | None:
    """An earlier run's grade of the same. Remarks and path are today's."""
    try:
        found = Grade.of(json.loads(files.read(_file(out / RESULTS, one.student, ".json"), MOST_MEGABYTES)))
    except (OSError, ValueError, KeyError, TypeError):  # none, or a file that is not ours: graded anew
        return None
    same = (found.student, found.lab, found.sha256, found.lab_sha256) == (one.student, lab.key, one.sha256, lab_hash)
    if not same or not one.sha256:  # what cannot be taken is looked at anew: that costs nothing
        return None
    return replace(found, path=str(one.path), remarks=list(one.remarks))


def _write_feedback(out: Path, found: Grade) -> None:
    path = feedback_file(out, found.student)
    text = feedback(found)
    if not path.is_file() or path.read_text("utf-8") != text:
        write_text(path, text)


def make(out: Path) -> None:
    """The folders of `out`. Raises InputError where they cannot be made."""
    try:
        for name in (RESULTS, FEEDBACK):
            (out / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError.of(
            "--out",
            str(out),
            f"cannot be made ({error.strerror})",
            "name a folder of yours that is there or may be made",
        ) from None


def feedback_file(out: Path, student: str) -> Path:
    """The page of one student."""
    return _file(out / FEEDBACK, student, ".md")


def _file(folder: Path, student: str, suffix: str) -> Path:
    """One for each student, whatever the name.

    >>> _file(Path("out"), "ada", ".md").name, _file(Path("out"), "a|b", ".md").name
    ('ada.md', 'a_b-0eab8a0a.md')
    """
    if PLAIN.fullmatch(student):
        return folder / f"{student}{suffix}"
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", student)[:60].lstrip(".")
    return folder / f"{plain}-{hashlib.sha256(student.encode()).hexdigest()[:8]}{suffix}"


def check_apart(out: Path, folder: Path) -> None:
    """Raises InputError where `out` would become one of the submissions."""
    inside, outer = os.path.realpath(out), os.path.realpath(folder)
    if os.path.commonpath([inside, outer]) == outer:
        rule = "lies in the folder of the submissions"
        raise InputError.of("--out", str(out), rule, "name a folder outside of it")
