"""A lab: a folder with a notebook, the student's file, the checks and their points.

labs/03_ring/
  lab.toml       title, minutes, summary
  lab.ipynb      the chapter, which ends in check cells
  tasks.py       the file that the student edits, generated from solution.py
  checks.py      the checks, run in the grader's process
  ranks.py       the code of the ranks, which calls the student's functions
  scenario.toml  the same exercise for the simulator
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from distsim import files, toml
from distsim.errors import InputError
from distsim.grading.check import Check, checks_in
from distsim.material import CONTEST, RECORD, home
from distsim.scenario_errors import explain

NOTEBOOK, TASKS, CHECKS, RANKS, SCENARIO, ABOUT, SOLUTION = (
    "lab.ipynb", "tasks.py", "checks.py", "ranks.py", "scenario.toml", "lab.toml", "solution.py",
)  # fmt: skip
PRISTINE = (NOTEBOOK, CHECKS, RANKS, SCENARIO, ABOUT)  # the lab's own files, used for grading
FOLDER_NAME = re.compile(r"(?P<number>\d\d)_(?P<name>[a-z][a-z0-9_]*)")
MOST_MEGABYTES = 8  # of any file of a lab
SEED_DIGITS = 8  # of a hash, to base 16


class About(BaseModel):
    """The content of lab.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    title: Annotated[str, Field(max_length=80, examples=["Ring all-reduce by hand"])]
    summary: Annotated[str, Field(max_length=200, examples=["Chunks go round; every link carries as much."])]
    minutes: Annotated[int, Field(ge=5, le=600, examples=[90])]
    ranks: Annotated[int, Field(ge=1, le=64)] = 4
    check_seconds: Annotated[float, Field(gt=0, le=3600)] = 600.0  # at most, also on a busy machine
    files: list[Annotated[str, Field(pattern=r"^[\w][\w.-]*$")]] = []


@dataclass(frozen=True)
class Lab:
    """One lab. folder: of its files; key: number and name, such as "03_ring"; about: the content of lab.toml."""

    folder: Path
    key: str
    about: About

    @classmethod
    def at(cls, folder: Path, key: str | None = None) -> Lab:
        """The lab in a folder. key: needed if the folder's name is not the lab's key.

        Raises InputError if a file is missing or lab.toml is wrong.
        """
        key = key or folder.resolve().name
        if not FOLDER_NAME.fullmatch(key):
            raise InputError.of("folder of a lab", str(folder), "must be named by number and name", "call it 03_ring")
        for name in PRISTINE:
            if not (folder / name).is_file():
                raise InputError.of("lab", str(folder), f"has no {name}", "name a lab's folder, such as labs/03_ring")
        return cls(folder, key, _about(folder / ABOUT))

    @property
    def number(self) -> str:
        """The number of the lab, as two digits."""
        return self.key[:2]

    @property
    def name(self) -> str:
        """The name of the lab, without its number."""
        return self.key[3:]

    @property
    def title(self) -> str:
        """The title for readers."""
        return self.about.title

    @cached_property
    def checks(self) -> dict[str, Check]:
        """The checks by name, in file order. Raises InputError if checks.py cannot be imported."""
        return checks_in(self.folder / CHECKS)

    @property
    def points(self) -> float:
        """The sum over all checks."""
        return sum(check.points for check in self.checks.values())

    @property
    def pristine(self) -> list[Path]:
        """The lab's own files, with which every submission is graded."""
        return [self.folder / name for name in (*PRISTINE, *self.about.files)]

    def contents_for_ranks(self) -> list[bytes]:
        """The contents of the lab's own files that ranks get."""
        return [files.read(self.folder / name, MOST_MEGABYTES) for name in (RANKS, *self.about.files)]

    def sha256(self) -> str:
        """The hash of the lab's own files. When the hash changes, submissions are graded again."""
        return _sha256(self.pristine)

    def seed(self) -> int:
        """The seed of the inputs that checks draw, if nobody names another: from the hash of the lab's own files.

        The notebook does not count. So a student's copy, whose notebook changes with each answer, keeps the seed.
        """
        return int(_sha256(path for path in self.pristine if path.name != NOTEBOOK)[:SEED_DIGITS], 16)


def _sha256(paths: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(f"{path.name}\0{hashlib.sha256(files.read(path, MOST_MEGABYTES)).hexdigest()}\0".encode())
    return whole.hexdigest()


def _about(path: Path) -> About:
    table = toml.read(files.read(path, MOST_MEGABYTES).decode("utf-8", errors="replace"), str(path))
    try:
        return About.model_validate(table)
    except ValidationError as error:
        raise explain(error, About, str(path)) from None


def lab_folders(given: Path | None = None) -> Iterator[Path]:
    """The folders to search for labs: `given`, or else the current folder, its labs/, the package's labs/, and the
    parent of the current folder if the current folder is a lab.
    """
    if given is not None:
        if not given.is_dir():
            raise InputError.of("--labs", str(given), "is not a folder", "name one with folders such as 03_ring in it")
        yield given
        return
    here = Path.cwd()
    around = [here.parent] if (here / ABOUT).is_file() else []
    places = [here, here / "labs", home() / "labs", *around]
    yield from (folder for folder in places if folder.is_dir())


def untouched(lab: Lab) -> Lab:
    """The package's own lab in place of one in a learner's copy, since the learner may have changed that one.

    A lab that the package does not have is the learner's own, and stays.
    """
    own = home() / "labs" / lab.key
    in_copy = (lab.folder.resolve().parent.parent / RECORD).is_file()
    return Lab.at(own) if in_copy and (own / ABOUT).is_file() else lab


def all_labs(given: Path | None = None) -> list[Lab]:
    """All labs by number. If two labs have one name, the first in the order of `lab_folders` is taken.

    Raises InputError if there is none.
    """
    found: dict[str, Lab] = {}
    for parent in lab_folders(given):
        for folder in sorted(parent.iterdir()):
            if FOLDER_NAME.fullmatch(folder.name) and (folder / ABOUT).is_file() and folder.name not in found:
                found[folder.name] = Lab.at(folder)
    if not found:
        cure = "go to the folder that has labs/, or name it by --labs"
        raise InputError.of("labs", str(given or Path.cwd()), "has no lab in it", cure)
    return [found[key] for key in sorted(found)]


def is_contest(asked: str) -> bool:
    """Whether the contest is asked for, by its number, its name or its folder.

    >>> is_contest("15"), is_contest("contest"), is_contest("labs/15_contest"), is_contest("3")
    (True, True, True, False)
    """
    name = Path(asked).name
    return name == CONTEST or name in CONTEST.split("_")


def find(asked: str, given: Path | None = None) -> Lab:
    """The lab for `asked`, which is a path, a number, a name or both: 3, 03, ring or 03_ring.

    Raises InputError, which lists all labs, if no lab or several labs match.
    """
    if os.path.isfile(Path(asked, ABOUT)):  # also where the name is none that a file can have
        return Lab.at(Path(asked))
    if is_contest(asked):
        raise InputError.of("lab", asked, "is the contest, which has no tasks and no checks", "call distsim contest")
    labs = all_labs(given)
    wanted = asked.zfill(2) if asked.isdigit() else asked
    matching = [lab for lab in labs if wanted in (lab.key, lab.number, lab.name)]
    if len(matching) != 1:
        names = ", ".join(lab.key for lab in labs)
        rule = "matches several labs" if matching else "is none of the labs"
        raise InputError.of("lab", asked, rule, f"take one of {names}")
    return matching[0]
