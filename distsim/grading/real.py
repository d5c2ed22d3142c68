"""A student's code run for real: ranks under torchrun, gloo between them, or NCCL where every rank has a GPU.

What the ranks do is the function `real(tasks, ...)` of the lab's ranks.py: a dict of JSON values, such as seconds.
This is for a student's own machine and own code: nothing is confined here, and nothing is judged.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from distsim import files
from distsim.errors import InputError
from distsim.grading.lab import MOST_MEGABYTES, RANKS, TASKS, Lab
from distsim.runtime.launch import Launch, launched
from distsim.runtime.measure import check_machine

ENTRY = ("-m", "distsim.grading.real_rank")
FUNCTION = "real"
DEADLINE_SECONDS = 120.0


def run(
    lab: Lab,
    *,
    ranks: int | None = None,
    arguments: dict[str, Any] | None = None,
    folder: Path | None = None,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> list[Any]:
    """What `real` returned, by rank.

    ranks: how many; default: as many as lab.toml says. arguments: of `real`, by name, as JSON. folder: where tasks.py
    is, if not with the lab.

    Raises InputError where the lab has no `real`, there is no tasks.py or no torch; RunError where a rank failed.
    """
    check_machine(deadline_seconds)
    tasks = (folder or lab.folder) / TASKS
    if not tasks.is_file():
        raise InputError.of(
            "folder of the lab", str(tasks.parent), f"has no {TASKS}", f"distsim lab start {lab.number} DIR"
        )
    if not _has_real(lab.folder / RANKS):
        raise InputError.of("lab", lab.key, f"has nothing to run: no {FUNCTION} in its {RANKS}", "take another lab")
    count = lab.about.ranks if ranks is None else ranks
    if count < 1:
        raise InputError.of("ranks", count, "must be at least 1", "write 4")
    job = {
        "ranks_file": str((lab.folder / RANKS).resolve()), "tasks_file": str(tasks.resolve()),
        "arguments": arguments or {}, "deadline_seconds": deadline_seconds,
    }  # fmt: skip
    roles = ["your code"] * count
    with launched(Launch(lab.key, roles, ENTRY, job, deadline_seconds)) as place:
        return [json.loads(result_file(place, rank).read_text("utf-8")) for rank in range(count)]


def result_file(folder: Path, rank: int) -> Path:
    """Where a rank leaves what `real` returned."""
    return folder / f"real-{rank}.json"


def _has_real(path: Path) -> bool:
    tree = ast.parse(files.read(path, MOST_MEGABYTES))
    return any(isinstance(node, ast.FunctionDef) and node.name == FUNCTION for node in tree.body)
