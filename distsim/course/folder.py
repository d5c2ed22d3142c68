"""Finds the course: its notebooks, and course/exercises beside them."""

from __future__ import annotations

from pathlib import Path

from distsim.errors import InputError
from distsim.material import RECORD, home

EXERCISES = "exercises"


def course_folder() -> Path:
    """The course around or below the current folder, or else the package's own.

    Raises InputError where there is no course.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        for place in (folder, folder / "course"):
            if place.name == "course" and (place / EXERCISES).is_dir():
                return place
    own = home() / "course"
    if (own / EXERCISES).is_dir():
        return own
    raise InputError.of(
        "folder of the course", str(here / "course"), "is not there, nor in the package",
        "go to the folder that has course/ in it",
    )  # fmt: skip


def number_of(chapter: Path) -> str:
    """The number of a chapter, from the name of its notebook or of its exercises.

    >>> number_of(Path("course/04b_does_it_learn.ipynb"))
    '04b'
    """
    return chapter.name.partition("_")[0]


def learners_folder() -> Path | None:
    """The learner's copy around the current folder, or None."""
    here = Path.cwd()
    return next((place for place in (here, *here.parents) if (place / RECORD).is_file()), None)
