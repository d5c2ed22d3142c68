"""Reads a student's submission: the bytes of tasks.py, their hash, and remarks on the notebook.

This module runs no code of a submission, follows no links, and limits the size of what it reads.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from distsim.errors import InputError
from distsim.files import printable
from distsim.grading.lab import NOTEBOOK, TASKS, Lab
from distsim.grading.metadata import check_sources, for_grading, grade_id, parsed

MOST_TASKS_BYTES = 1_000_000
MOST_NOTEBOOK_BYTES = 20_000_000


@dataclass(frozen=True)
class Submission:
    """A student's file. path: of tasks.py. content: its bytes, or None if it is missing or unreadable.

    missing: the reason for None. remarks: for the student; they cost no points. name: the person's, if it is not the
    key `student`.
    """

    student: str
    path: Path
    content: bytes | None
    missing: str = ""
    remarks: tuple[str, ...] = ()
    name: str = ""

    @property
    def sha256(self) -> str:
        """The hash of the content; empty if there is none."""
        return "" if self.content is None else hashlib.sha256(self.content).hexdigest()


def submission(path: Path, lab: Lab, student: str | None = None) -> Submission:
    """The submission at `path`: a tasks.py, a folder with a tasks.py, or a folder with such a folder of the lab's name.

    Raises InputError if `path` does not exist.
    """
    if not path.is_dir():
        if not path.exists():
            raise InputError.of("--submission", str(path), "is not there", "name a folder with tasks.py, or the file")
        return of_file(path, path.parent / NOTEBOOK, lab, student or printable(path.absolute().parent.name))
    named = student or printable(path.absolute().name)
    for folder in (path, path / lab.key):
        if os.path.lexists(folder / TASKS) and not (folder != path and folder.is_symlink()):
            return of_file(folder / TASKS, folder / NOTEBOOK, lab, named)
    return Submission(named, path / TASKS, None, f"there is no {TASKS} in the submission")


def of_file(path: Path, notebook: Path | None, lab: Lab, student: str) -> Submission:
    """The submission of one file. notebook: the submitted notebook, if there may be one."""
    remarks = tuple(_remarks(notebook, lab)) if notebook else ()
    try:
        content = regular(path, MOST_TASKS_BYTES)
    except OSError as error:
        return Submission(student, path, None, f"{TASKS} cannot be taken: {error.strerror}", remarks)
    return Submission(student, path, content, remarks=remarks)


def regular(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file. Raises OSError for a link, folder or device, or above `most_bytes`."""
    try:
        # Without O_NONBLOCK, opening a named pipe would wait forever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    with os.fdopen(descriptor, "rb") as stream:
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it holds more than {most_bytes / 1e6:g} MB")
    return content


def _remarks(path: Path, lab: Lab) -> list[str]:
    """The differences between the check cells of the submitted notebook and those of the lab's notebook."""
    if not os.path.lexists(path):
        return []
    try:
        content = regular(path, MOST_NOTEBOOK_BYTES)
    except OSError as error:
        return [f"{NOTEBOOK} was not looked at: {error.strerror}. The lab's own was run."]
    try:
        theirs = check_sources(parsed(content, str(path)))
    except InputError:
        return [f"{NOTEBOOK} is no notebook that can be read. The lab's own was run."]
    ours = check_sources(for_grading(lab))
    found = []
    for check in lab.checks:
        own = grade_id(lab, check)
        if own not in theirs:
            found.append(f"The cell of the check {check} is missing in {NOTEBOOK}. The lab's own was run.")
        elif theirs[own] != ours.get(own):
            found.append(f"The cell of the check {check} was edited in {NOTEBOOK}. The lab's own was run.")
    return found
