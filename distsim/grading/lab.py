"""A lab: a folder with a notebook, the student's file, the checks, and what they are worth.

labs/03_ring/
  lab.toml       title, minutes, summary
  lab.ipynb      the chapter, which ends in check cells
  tasks.py       what the student edits, generated from solution.py
  checks.py      what is looked at, in the process that decides
  ranks.py       what runs in the ranks and calls the student's functions
  scenario.toml  the same exercise for the simulator
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import distsim
from distsim import files, toml
from distsim.errors import InputError
from distsim.grading.check import Check, checks_in
from distsim.validation import explain

NOTEBOOK, TASKS, CHECKS, RANKS, SCENARIO, ABOUT, SOLUTION = (
    "lab.ipynb", "tasks.py", "checks.py", "ranks.py", "scenario.toml", "lab.toml", "solution.py",
)  # fmt: skip
PRISTINE = (NOTEBOOK, CHECKS, RANKS, SCENARIO, ABOUT)  # what a submission is graded with
FOLDER_NAME = re.compile(r"(?P<number>\d\d)_(?P<name>[a-z][a-z0-9_]*)")
MOST_MEGABYTES = 8  # of any file of a lab


class About(BaseModel):
    """lab.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    title: Annotated[str, Field(max_length=80, examples=["Ring all-reduce by hand"])]
    summary: Annotated[str, Field(max_length=200, examples=["Chunks go round; every link carries as much."])]
    minutes: Annotated[int, Field(ge=5, le=600, examples=[90])]
    ranks: Annotated[int, Field(ge=1, le=64)] = 4
    check_seconds: Annotated[float, Field(gt=0, le=3600)] = 120.0
    files: list[Annotated[str, Field(pattern=r"^[\w][\w.-]*$")]] = []


@dataclass(frozen=True)
class Lab:
    """One lab. folder: where its files are; its name says number and name; about: what lab.toml says."""

    folder: Path
    key: str
    about: About

    @classmethod
    def at(cls, folder: Path, key: str | None = None) -> Lab:
        """The lab in a folder. key: "03_ring", where the folder has another name.

        Raises InputError where a file is missing, or lab.toml is wrong.
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
        """Two digits."""
        return self.key[:2]

    @property
    def name(self) -> str:
        """Without the number."""
        return self.key[3:]

    @property
    def title(self) -> str:
        """As people read it."""
        return self.about.title

    @cached_property
    def checks(self) -> dict[str, Check]:
        """By name, in their order. Raises InputError where checks.py cannot be imported."""
        return checks_in(self.folder / CHECKS)

    @property
    def points(self) -> float:
        """Of all checks together."""
        return sum(check.points for check in self.checks.values())

    @property
    def pristine(self) -> list[Path]:
        """The files that a submission is graded with, beside its own tasks.py."""
        return [self.folder / name for name in (*PRISTINE, *self.about.files)]

    def sha256(self) -> str:
        """Of all that a submission is graded with: another value asks for grading anew."""
        whole = hashlib.sha256()
        for path in self.pristine:
            whole.update(f"{path.name}\0{hashlib.sha256(files.read(path, MOST_MEGABYTES)).hexdigest()}\0".encode())
        return whole.hexdigest()


def _about(path: Path) -> About:
    table = toml.read(files.read(path, MOST_MEGABYTES).decode("utf-8", errors="replace"), str(path))
    try:
        return About.model_validate(table)
    except ValidationError as error:
        raise explain(error, About, str(path)) from None


def shelves(given: Path | None = None) -> Iterator[Path]:
    """The folders that may hold labs: the one given, or here, here in labs/, the one beside the package, and of a lab
    that one stands in the folder that it is in.
    """
    if given is not None:
        if not given.is_dir():
            raise InputError.of("--labs", str(given), "is not a folder", "name one with folders such as 03_ring in it")
        yield given
        return
    here = Path.cwd()
    around = [here.parent] if (here / ABOUT).is_file() else []
    places = [here, here / "labs", Path(distsim.__file__).parents[1] / "labs", *around]
    yield from (folder for folder in places if folder.is_dir())


def all_labs(given: Path | None = None) -> list[Lab]:
    """Every lab there is, by number. Of two with one name the nearer one counts.

    Raises InputError where there is none.
    """
    found: dict[str, Lab] = {}
    for shelf in shelves(given):
        for folder in sorted(shelf.iterdir()):
            if FOLDER_NAME.fullmatch(folder.name) and (folder / ABOUT).is_file() and folder.name not in found:
                found[folder.name] = Lab.at(folder)
    if not found:
        raise InputError.of(
            "labs",
            str(given or Path.cwd()),
            "has no lab in it",
            "go to the folder that has labs/, or name it by --labs",
        )
    return [found[key] for key in sorted(found)]


def find(asked: str, given: Path | None = None) -> Lab:
    """The lab that `asked` means: a path, or its number, name or both, as 3, 03, ring and 03_ring.

    Raises InputError, which names the labs there are.
    """
    if Path(asked).joinpath(ABOUT).is_file():
        return Lab.at(Path(asked))
    labs = all_labs(given)
    wanted = asked.zfill(2) if asked.isdigit() else asked
    matching = [lab for lab in labs if wanted in (lab.key, lab.number, lab.name)]
    if len(matching) != 1:
        names = ", ".join(lab.key for lab in labs)
        raise InputError.of(
            "lab", asked, "is none of the labs" if not matching else "is several", f"take one of {names}"
        )
    return matching[0]
