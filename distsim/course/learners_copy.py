"""A learner's copy of the course: chapters, explorers, pages and labs in a folder of the learner's own.

A record in the folder holds the hash of each file as it was laid there. So a new version of the package replaces the
files that the learner left as they were, and never a file that the learner changed: the new version of such a file is
laid beside it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from distsim import files, material
from distsim.course.folder import EXERCISES, learners_folder
from distsim.errors import InputError

FOLDER = "distsim-course"
CHAPTER = re.compile(r"\d\d[b-z]?_\w+\.ipynb")
MOST_MEGABYTES = 8  # of any file of the course
OTHER_FOLDER = "name a new or empty folder: distsim course FOLDER"


@dataclass
class Laid:
    """What was done. new, updated: files of the folder; beside: the learner's file and the new version next to it."""

    folder: Path
    new: list[Path] = field(default_factory=list)
    updated: list[Path] = field(default_factory=list)
    beside: list[tuple[Path, Path]] = field(default_factory=list)


def usual_folder() -> Path:
    """The learner's copy around the current folder, or else `distsim-course` in the current folder."""
    return learners_folder() or Path.cwd() / FOLDER


def lay(folder: Path, source: Path | None = None) -> Laid:
    """Lays the material into `folder`, or brings an earlier copy there up to date. No work of the learner is lost.

    source: the folder with course/ and labs/. Default: the package's own.

    Raises InputError where `folder` holds something else, or cannot be written to.
    """
    source = source or material.home()
    if not (source / "course").is_dir():
        raise InputError.of("course", str(source), "has no chapters", "install distsim-course anew")
    record = _record(folder)
    laid = Laid(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_record(folder, record)  # so that the next call knows the copy, however this one ends
        try:
            for file in material.files(source):
                if EXERCISES not in file.parts:  # they compute the right answers; chapters use the package's own
                    content = files.read(source / file, MOST_MEGABYTES)
                    _lay(_to_be_guessed(content) if CHAPTER.match(file.name) else content, file, record, laid)
        finally:
            _write_record(folder, record)
    except OSError as error:
        raise InputError.of("FOLDER", str(folder), f"cannot be written to ({error.strerror})", OTHER_FOLDER) from None
    return laid


def _to_be_guessed(content: bytes) -> bytes:
    """A chapter without the outputs of its first guess and of all cells below."""
    # Here, so that the command line needs none of the course's packages.
    import nbformat

    from distsim.course.cells import GUESS
    from distsim.grading.metadata import parsed

    notebook = parsed(content, "chapter")
    before = True
    for cell in notebook.cells:
        before &= GUESS not in cell.metadata.get("tags", ())
        if cell.cell_type == "code" and not before:
            cell.outputs, cell.execution_count = [], None
    text: str = nbformat.writes(notebook)  # type: ignore[no-untyped-call]  # nbformat
    return f"{text}\n".encode()


def _record(folder: Path) -> dict[str, str]:
    """The hash of each file as it was laid; of a file that the learner changed, of the newest version offered."""
    path = folder / material.RECORD
    if path.is_file():
        try:
            found = json.loads(files.read(path, MOST_MEGABYTES))
            return {str(file): str(known) for file, known in found.items()}
        except (OSError, ValueError, AttributeError):
            return {}  # then each file that differs counts as the learner's
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        rule = "holds something else than a copy of the course"
        raise InputError.of("FOLDER", str(folder), rule, OTHER_FOLDER)
    return {}


def _write_record(folder: Path, record: dict[str, str]) -> None:
    files.write_text(folder / material.RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n")


def _lay(content: bytes, file: Path, record: dict[str, str], laid: Laid) -> None:
    """Lays one file, where the learner has not changed it; else lays it beside, once."""
    place, known, ours = laid.folder / file, record.get(file.as_posix()), _hash(content)
    if not place.exists() and not place.is_symlink():
        place.parent.mkdir(parents=True, exist_ok=True)
        _write(place, content)
        laid.new.append(file)
    elif (theirs := _hash_of(place)) != ours:
        if theirs is not None and theirs == known:
            _write(place, content)
            laid.updated.append(file)
        elif ours != known:
            laid.beside.append((file, _beside(content, file, record, laid.folder)))
    record[file.as_posix()] = ours  # last, so that an interrupted call does not count it as laid


def _beside(content: bytes, file: Path, record: dict[str, str], folder: Path) -> Path:
    """Writes the new version next to the learner's file, over no file that the learner wrote or changed."""
    number, ours = 1, _hash(content)
    while True:
        name = file.with_name(f"{file.stem}.new{number if number > 1 else ''}{file.suffix}")
        place, known = folder / name, record.get(name.as_posix())
        free = not place.exists() and not place.is_symlink()
        if free or _hash_of(place) in {known, ours} - {None}:
            _write(place, content)
            record[name.as_posix()] = ours
            return name
        number += 1


def _write(place: Path, content: bytes) -> None:
    with files.replaced(place) as stream:
        stream.write(content)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _hash_of(place: Path) -> str | None:
    """None for what is no file of its own, such as a folder or a link: it is the learner's."""
    if place.is_symlink() or not place.is_file():
        return None
    return _hash(place.read_bytes())
