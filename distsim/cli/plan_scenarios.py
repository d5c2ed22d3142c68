"""The ways of a plan as scenario files, which every other command takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import tomli_w

from distsim import files
from distsim.errors import InputError
from distsim.plan import Way
from distsim.profile import Profile

STEPS = 20  # enough for a median, few enough to be really run
PROFILE = "profile.json"


def check_new_folder(folder: Path) -> None:
    """Raises InputError where the folder cannot be made, or has something in it. Only an attempt tells."""
    try:
        if not folder.exists():
            folder.mkdir()
            folder.rmdir()
            return
        full = any(folder.iterdir())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        rule = f"cannot be made ({reason})"
        raise InputError.of("--scenarios", str(folder), rule, "name a new folder in a folder of yours") from None
    if full:
        raise InputError.of("--scenarios", str(folder), "is a folder that is not empty", "name a new folder")


def write_ways(found: Sequence[Way], folder: Path, model: str, profile: Profile) -> None:
    """Writes the profile, and the ways in their order: 001.toml, 002.toml, and so on.

    model: "my_model.py:build", or the path of a profile. The scenarios name the model's file where it is known, so that
    real runs train it.
    """
    folder.mkdir(exist_ok=True)
    profile.save(folder / PROFILE)
    workload = {"profile": PROFILE}
    spec = model if not model.endswith(".json") else str(Path(model).parent / profile.model)
    file, _, function = spec.rpartition(":")
    if Path(file).is_file():
        workload["model"] = f"{os.path.relpath(file, folder)}:{function}"
    for number, way in enumerate(found, start=1):
        table = way.scenario.table()
        handed_on = {key: value for key, value in table["workload"].items() if key == "activation"}
        table |= {"name": way.name, "steps": STEPS, "workload": workload | handed_on}
        files.write_text(folder / f"{number:03d}.toml", tomli_w.dumps(table))
