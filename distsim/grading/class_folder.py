"""Reads what a class handed in: a folder, or a .zip of it, as people and learning platforms lay it out.

by hand, nbgrader   ada/tasks.py, ada/03_ring/tasks.py                     student: ada
Moodle              Ada Byron_1234567_assignsubmission_file/tasks.py       student: Participant 1234567
Canvas              byronada_12345_67890_tasks.py                          student: 12345

The student is the key by which the platform finds the person again: the folder's name, the Identifier of Moodle's
grading worksheet, the ID of Canvas's gradebook.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from distsim.errors import InputError
from distsim.files import printable
from distsim.grading.lab import NOTEBOOK, TASKS, Lab
from distsim.grading.submission import (
    MOST_NOTEBOOK_BYTES,
    MOST_TASKS_BYTES,
    Submission,
    of_file,
    submission,
)

MOODLE = re.compile(r"(?P<name>.*)_(?P<key>\d+)_assignsubmission_(?P<kind>file|onlinetext)(_(?P<file>.*))?", re.DOTALL)
CANVAS = re.compile(r"(?P<name>.+?)_(?P<late>LATE_)?(?P<key>\d+)_(?P<attempt>\d+)_(?P<file>.+)", re.DOTALL)
NAMES_OF_TASKS = re.compile(r"tasks(?:[ _-]*\(?(?P<copy>\d+)\)?)?\.py")  # browsers and platforms number copies
HIDDEN = (".", "__MACOSX")
MOST_MEMBERS = 100_000
CURE = f"name a folder, or a .zip, with a folder for each student, or an export of Moodle or Canvas, with their {TASKS}"


@dataclass(frozen=True)
class ClassFolder:
    """The submissions, by student. unread: the names of what is nobody's submission."""

    submissions: Sequence[Submission]
    unread: Sequence[str]


@dataclass(frozen=True)
class _File:
    """A file of one student. order: a later one is newer. called: the name that the student's file had."""

    path: Path
    called: str
    order: tuple[float, ...]


@dataclass
class _Student:
    """What a platform has from one student."""

    name: str
    files: list[_File] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def submissions(place: Path, lab: Lab) -> ClassFolder:
    """What the students of a class handed in for a lab. Names that begin with a dot are skipped.

    Raises InputError if `place` is neither a folder nor a .zip, or holds no submission at all.
    """
    if place.is_dir():
        return _in_folder(place, lab)
    if not place.is_file() or not zipfile.is_zipfile(place):
        raise InputError.of("--all", str(place), "is not a folder and no .zip", CURE)
    with _unpacked(place) as folder:
        found = _in_folder(_only_folder(folder, lab), lab, str(place))
    return replace(
        found, submissions=[replace(one, path=_inside(place, one.path, folder)) for one in found.submissions]
    )


def _in_folder(folder: Path, lab: Lab, told: str | None = None) -> ClassFolder:
    """told: the name for messages, if it is not the folder's."""
    found: list[Submission] = []
    unread: list[str] = []
    students: dict[str, _Student] = {}
    for place in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = printable(place.name)
        if place.name.startswith(HIDDEN):
            continue
        if match := MOODLE.fullmatch(name):
            student = students.setdefault(f"Participant {match['key']}", _Student(match["name"]))
            _add_moodle(student, place, match, lab)
        elif not place.is_dir():
            if match := CANVAS.fullmatch(name):
                student = students.setdefault(match["key"], _Student(match["name"]))
                if match["late"] and "Handed in late." not in student.remarks:
                    student.remarks.append("Handed in late.")
                student.files.append(_File(place, match["file"], (int(match["attempt"]), _copy(match["file"]))))
            else:
                unread.append(name)
        elif place.is_symlink():
            found.append(Submission(name, place / TASKS, None, "the folder is a symbolic link, which is not followed"))
        else:
            found.append(_readable(place, lab, name))
    found += [_newest(key, student, folder, lab) for key, student in students.items()]
    if not found:
        raise InputError.of("--all", told or str(folder), "has no submission in it", CURE)
    if twice := {one.student for one in found if sum(other.student == one.student for other in found) > 1}:
        rule = "is the key of several submissions"
        raise InputError.of("--all", ", ".join(sorted(twice)), rule, "put the exports into folders of their own")
    return ClassFolder(sorted(found, key=lambda one: one.student), unread)


def _add_moodle(student: _Student, place: Path, match: re.Match[str], lab: Lab) -> None:
    """The file, or the files of the folder, that Moodle has from a student."""
    if match["kind"] == "onlinetext":
        student.remarks.append("What was typed into Moodle's page (online text) was not read.")
    elif place.is_symlink():
        student.remarks.append("The folder is a symbolic link, which is not followed.")
    elif not place.is_dir():
        student.files.append(_file(place, match["file"] or ""))
    else:
        for folder in (place, place / lab.key):
            if folder.is_dir() and not folder.is_symlink():
                files = sorted(one for one in folder.iterdir() if not one.name.startswith(HIDDEN))
                student.files += [_file(one, printable(one.name)) for one in files]


def _file(path: Path, called: str) -> _File:
    return _File(path, called, (path.lstat().st_mtime, _copy(called)))


def _copy(called: str) -> int:
    match = NAMES_OF_TASKS.fullmatch(called)
    return int(match["copy"] or 0) if match else 0


def _newest(key: str, student: _Student, folder: Path, lab: Lab) -> Submission:
    """The newest of a student's files whose name is that of tasks.py, perhaps with a number."""
    tasks = sorted((one for one in student.files if NAMES_OF_TASKS.fullmatch(one.called)), key=lambda one: one.order)
    if not tasks:
        named = ", ".join(sorted(one.called for one in student.files))
        reason = f"there is no {TASKS} in the submission, which has {named or 'no file'}"
        return Submission(key, folder, None, reason, tuple(student.remarks), student.name)
    *earlier, newest = tasks
    remarks = list(student.remarks)
    if earlier:
        remarks.append(f"Of {len(tasks)} files handed in, the newest was graded: {newest.called}.")
    notebook = newest.path.with_name(NOTEBOOK) if newest.path.parent != folder else None
    found = of_file(newest.path, notebook, lab, key)
    return replace(found, remarks=(*remarks, *found.remarks), name=student.name)


def _readable(place: Path, lab: Lab, name: str) -> Submission:
    try:
        return submission(place, lab, name)
    except OSError as error:
        return Submission(name, place / TASKS, None, f"the folder cannot be read ({error.strerror})")


@contextmanager
def _unpacked(archive: Path) -> Iterator[Path]:
    """A folder, which is removed afterwards, with the plain files of a .zip. Only files that are read have a content.

    Raises InputError if the archive is damaged or encrypted, or if a file of it would lie outside of the folder.
    """
    try:
        opened = zipfile.ZipFile(archive)
    except zipfile.BadZipFile as error:
        raise InputError.of("--all", str(archive), f"cannot be unpacked ({error})", "export it again") from None
    with opened, tempfile.TemporaryDirectory(prefix="distsim-class-") as made:
        members = opened.infolist()
        if len(members) > MOST_MEMBERS:
            raise InputError.of("--all", str(archive), f"has more than {MOST_MEMBERS} files in it", CURE)
        for member in members:
            parts = PurePosixPath(_name(member)).parts
            if ".." in parts or PurePosixPath(_name(member)).is_absolute():
                raise InputError.of("--all", printable(member.filename), "would lie outside of the archive", CURE)
            if not any(part.startswith(HIDDEN) for part in parts):
                _unpack(opened, member, Path(made, *parts), archive)
        yield Path(made)


def _unpack(opened: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path, archive: Path) -> None:
    try:
        if member.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(member.external_attr >> 16):
            place.symlink_to("nowhere")  # refused as any symbolic link
            return
        most = MOST_TASKS_BYTES if place.suffix == ".py" else MOST_NOTEBOOK_BYTES if place.suffix == ".ipynb" else 0
        with opened.open(member) as stream:
            place.write_bytes(stream.read(most + 1) if most else b"")
        when = time.mktime((*member.date_time, 0, 0, -1))
        os.utime(place, (when, when))
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        rule = f"cannot be unpacked ({error})"
        raise InputError.of("--all", f"{archive}: {printable(member.filename)}", rule, "export it again") from None
    except (OSError, OverflowError, ValueError) as error:
        rule = f"cannot be unpacked ({getattr(error, 'strerror', None) or error})"
        raise InputError.of("--all", f"{archive}: {printable(member.filename)}", rule, "unpack it by hand") from None


def _name(member: zipfile.ZipInfo) -> str:
    """The name of a file in a .zip; some programs write UTF-8 and do not say so."""
    name = member.filename.replace("\\", "/")  # Windows programs of old separate folders so
    if member.flag_bits & 0x800:
        return name
    try:
        return name.encode("cp437").decode("utf-8")
    except UnicodeError:
        return name


def _only_folder(folder: Path, lab: Lab) -> Path:
    """The folder that holds the students': the only one in an archive of it, if that is not a student's own."""
    entries = list(folder.iterdir())
    if len(entries) != 1 or not entries[0].is_dir() or MOODLE.fullmatch(entries[0].name):
        return folder
    (one,) = entries
    own = any(os.path.lexists(place / name) for place in (one, one / lab.key) for name in (TASKS, NOTEBOOK))
    return folder if own else one


def _inside(archive: Path, path: Path, folder: Path) -> Path:
    """The path within an archive, as if the archive were a folder."""
    return archive / path.relative_to(folder) if path.is_relative_to(folder) else archive
