"""Finds the course: its notebooks, and course/exercises beside them."""

from __future__ import annotations

from pathlib import Path

import distsim
from distsim.errors import InputError

EXERCISES = "exercises"


def course_folder() -> Path:
    """The course around or below the current folder, or else the course beside this package's source.

    Raises InputError where there is no course.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        for place in (folder, folder / "course"):
            if place.name == "course" and (place / EXERCISES).is_dir():
                return place
    beside = Path(distsim.__file__).parents[1] / "course"
    if (beside / EXERCISES).is_dir():
        return beside
    raise InputError.of(
        "folder of the course", str(here / "course"), "is not there, nor beside the package",
        "go to the folder that has course/ in it",
    )  # fmt: skip
