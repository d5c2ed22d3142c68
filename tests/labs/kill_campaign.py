"""Kills processes that save checkpoints, at random moments, and counts the checkpoints that are lost.

    python kill_campaign.py LAB_FOLDER WRONG_OR_NOTHING MOST_KILLS MOST_LOST SEED

Two children save states with the numbers 1, 2, 3, ... until SIGKILL ends them, each its own checkpoint; the names of
both differ in their endings. Each child has told the number of each save that has returned. Then this process, which is
another one, must load that state or the next one, whole. It prints the number of kills and the losses as JSON, and
stops as soon as so many are lost.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

NUMBERS = 300_000  # of a state
SAVES = 3.0  # a kill comes in the time of so many saves
BESIDE = 1_000_000  # the number of the state in a checkpoint of the folder that nobody saves meanwhile
PLACE = "/dev/shm"  # another file system than that of temporary files, where there is one


def tasks_of(lab: Path, wrong: str) -> ModuleType:
    """The solution, with the functions of a wrong one in place of its own."""
    text = (lab / "solution.py").read_text("utf-8")
    if wrong:
        text += "\n\n" + (lab / "wrong" / f"{wrong}.py").read_text("utf-8")
    module = module_from_spec(spec_from_loader("tasks", loader=None))  # type: ignore[arg-type]
    sys.modules["tasks"] = module
    exec(compile(text, "tasks.py", "exec"), vars(module))
    return module


def state(number: int) -> dict[str, Any]:
    """The state with this number."""
    return {"tensor": torch.full((NUMBERS,), float(number)), "array": np.full(10, number), "number": number}


def number_of(found: dict[str, Any] | None) -> int:
    """The number of a state; 0 for none. Raises ValueError if it is not whole."""
    if found is None:
        return 0
    number = int(found["number"])
    whole = found["tensor"].shape == (NUMBERS,) and bool((found["tensor"] == number).all())
    if not whole or not np.array_equal(found["array"], np.full(10, number)):
        raise ValueError("parts of two states")
    return number


def saving(tasks: ModuleType, path: Path, first: int) -> tuple[int, int]:
    """A child that saves states from number `first` on. Returns its process ID and where it tells the next number."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writing, first.to_bytes(4, "big"))  # it begins now
            for number in range(first, first + 1000):
                tasks.save(state(number), path)
                os.write(writing, (number + 1).to_bytes(4, "big"))
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def killed_saves(tasks: ModuleType, paths: Sequence[Path], first: int, seconds: float) -> list[int]:
    """Saves into all paths at once, until the savers are killed. For each path, the last save that returned."""
    savers = [saving(tasks, path, first) for path in paths]
    begun = [os.read(reading, 4) for _, reading in savers]
    time.sleep(seconds)
    for child, _ in savers:
        os.kill(child, signal.SIGKILL)
    told = []
    for (_, reading), number in zip(savers, begun, strict=True):
        with os.fdopen(reading, "rb") as rest:
            told.append(number + rest.read())
    ends = [os.waitpid(child, 0)[1] for child, _ in savers]
    if not all(map(os.WIFSIGNALED, ends)):
        raise ValueError("save has ended in an error")
    return [int.from_bytes(numbers[-4:], "big") - 1 for numbers in told]


def lost_by(tasks: ModuleType, folder: Path, draws: random.Random, save_seconds: float) -> str:
    """Why a checkpoint is lost by one kill; empty if none is."""
    paths, beside = [folder / "model.checkpoint", folder / "model.copy"], folder / "other.checkpoint"
    tasks.save(state(BESIDE), beside)
    before = draws.choice([0, 2])  # saves that are whole before
    for number in range(1, before + 1):
        for path in paths:
            tasks.save(state(number), path)
    try:
        last = killed_saves(tasks, paths, before + 1, draws.uniform(0.0, SAVES * save_seconds))
        for path, returned in zip(paths, last, strict=True):
            if (found := number_of(tasks.load(path))) not in (returned, returned + 1):
                return f"state {found}, after save {returned} has returned"
            tasks.save(state(returned + 2), path)
            if (found := number_of(tasks.load(path))) != returned + 2:
                return f"state {found}, after one more save"
        if number_of(tasks.load(beside)) != BESIDE:
            return "the other checkpoint"
    except Exception as error:  # noqa: BLE001 - any error of a wrong solution
        return f"{type(error).__name__}: {error}"[:100]
    return ""


def main(lab: str, wrong: str, most_kills: str, most_lost: str, seed: str) -> None:
    """Runs the campaign."""
    torch.set_num_threads(1)
    tasks, draws = tasks_of(Path(lab), wrong), random.Random(int(seed))
    place = PLACE if os.access(PLACE, os.W_OK) else None
    kills, save_seconds = 0, 0.01
    lost: list[str] = []
    while kills < int(most_kills) and len(lost) < int(most_lost):
        folder = Path(tempfile.mkdtemp(dir=place))
        try:
            before = time.perf_counter()
            tasks.save(state(1), folder / "model.checkpoint")
            save_seconds = 0.9 * save_seconds + 0.1 * (time.perf_counter() - before)
            shutil.rmtree(folder)
            folder.mkdir()
            if why := lost_by(tasks, folder, draws, save_seconds):
                lost.append(why)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        kills += 1
    print(json.dumps({"kills": kills, "lost": lost}))


if __name__ == "__main__":
    main(*sys.argv[1:])
