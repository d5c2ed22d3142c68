"""The course's material: chapters, explorers, pages, and the files of each lab that learners get.

The build of the wheel copies the material into the package by this module, so it imports the standard library alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

SHIPPED = "course_and_labs"  # the folder of the material in an installed package
RECORD = ".distsim-course.json"  # in a learner's copy: what was laid there
LAB_FILES = ("lab.ipynb", "tasks.py", "checks.py", "ranks.py", "scenario.toml", "lab.toml")
CONTEST = "15_contest"  # graded by `distsim contest`, not by checks
SUFFIXES = (".ipynb", ".md", ".py", ".svg", ".toml")  # of the files of course/


def home() -> Path:
    """The folder with course/ and labs/: inside of an installed package, or else the repository.

    >>> (home() / "course" / "00_tour.ipynb").is_file()
    True
    """
    package = Path(__file__).parent
    shipped = package / SHIPPED
    return shipped if shipped.is_dir() else package.parent


def files(root: Path) -> list[Path]:
    """The files of the material in `root`, relative to `root`, in the order of their names.

    No file with a solution is among them: of a lab, only the files that learners get.

    >>> found = files(home())
    >>> Path("labs/03_ring/tasks.py") in found, Path("labs/03_ring/solution.py") in found
    (True, False)
    """
    return sorted(path.relative_to(root) for path in (*_of_course(root / "course"), *_of_labs(root / "labs")))


def of_contest(labs: Path) -> list[Path]:
    """The files of the contest that everybody gets; empty if it is not among the labs.

    >>> [path.name for path in of_contest(home() / "labs")][:2]
    ['lab.ipynb', 'contest.toml']
    """
    contest = labs / CONTEST
    return [path for path in (contest / "lab.ipynb", *sorted(contest.rglob("*.toml"))) if path.is_file()]


def _of_course(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
        if path.suffix in SUFFIXES and not hidden:
            yield path


def _of_labs(folder: Path) -> Iterator[Path]:
    yield from folder.glob("README.md")
    yield from of_contest(folder)
    for about in folder.glob("[0-9][0-9]_*/lab.toml"):
        further = tomllib.loads(about.read_text("utf-8")).get("files", [])
        yield from (about.parent / name for name in (*LAB_FILES, *further))
