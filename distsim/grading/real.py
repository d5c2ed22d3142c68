"""Runs a student's code for real: ranks under torchrun with gloo, or with NCCL if every rank has a GPU.

Each rank calls the function `real(tasks, ...)` of the lab's ranks.py, which returns JSON, such as a dict of seconds.
By default, the argument `seconds` of `real` holds compute times drawn from the lab's scenario, by rank and step. The
argument `unwritten` holds the names in tasks.py that cannot be run yet, so that `real` can leave them out.
Students run their own code on their own machine here: the run is neither confined nor graded.
"""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from distsim import files
from distsim.errors import InputError, RunError
from distsim.grading.lab import MOST_MEGABYTES, RANKS, SCENARIO, TASKS, Lab
from distsim.grading.unwritten_functions import Unwritten, blocked, unwritten
from distsim.progress import Report
from distsim.runtime.emulation.plan import NetworkPlan
from distsim.runtime.launch.launcher import Launch, launched
from distsim.runtime.measure import check_machine
from distsim.scenario import Scenario

ENTRY = ("-m", "distsim.grading.real_rank")
IMPORTS = ("distsim.runtime.transport.backend",)
FUNCTION = "real"
SECONDS, UNWRITTEN = "seconds", "unwritten"
DEADLINE_SECONDS = 120.0


def run(
    lab: Lab,
    *,
    ranks: int | None = None,
    arguments: dict[str, Any] | None = None,
    folder: Path | None = None,
    emulate: bool = False,
    deadline_seconds: float = DEADLINE_SECONDS,
    progress: Report | None = None,
) -> list[Any]:
    """The results of `real`, by rank.

    ranks: the number of ranks, by default that of lab.toml. arguments: of `real`, by name, as JSON. folder: of
    tasks.py, by default the lab's. emulate: whether to emulate the links of the lab's scenario.
    progress: called with the `Phase` of the run many times a second.

    Raises InputError if the lab has no `real`, if tasks.py or torch is missing, or if this machine cannot emulate
    links. Raises RunError if a rank failed, or if no function to run has been written yet.
    """
    check_machine(deadline_seconds)
    tasks = _tasks(lab, folder)
    text = _text(tasks)
    count = lab.about.ranks if ranks is None else ranks
    if count < 1:
        raise InputError.of("ranks", count, "must be at least 1", "write 4")
    job = {
        "ranks_file": str((lab.folder / RANKS).resolve()), "tasks_file": str(tasks.resolve()),
        "arguments": _complete(lab, arguments or {}, count, text), "deadline_seconds": deadline_seconds,
    }  # fmt: skip
    roles = ["your code"] * count
    # What ranks do is the learner's to write, so the hosts need not be alike.
    network = replace(NetworkPlan.of(_scenario(lab, count)), alike=False) if emulate else None
    launch = Launch(lab.key, roles, ENTRY, job, deadline_seconds, network=network, progress=progress, imports=IMPORTS)
    with launched(launch) as place:
        results = [json.loads(result_file(place, rank).read_text("utf-8")) for rank in range(count)]
    if not any(results) and (missing := unwritten(text)):
        raise RunError("\n  ".join([f"{lab.key}: there is nothing to run yet", *map(str, missing)]))
    return results


def still_unwritten(lab: Lab, folder: Path | None = None) -> list[Unwritten]:
    """The functions that have not been written yet. Raises InputError if there is no tasks.py."""
    return unwritten(_text(_tasks(lab, folder)))


def result_file(folder: Path, rank: int) -> Path:
    """The file with the result of a rank's `real`."""
    return folder / f"real-{rank}.json"


def _tasks(lab: Lab, folder: Path | None) -> Path:
    path = (folder or lab.folder) / TASKS
    if not path.is_file():
        raise InputError.of(
            "folder of the lab", str(path.parent), f"has no {TASKS}", f"distsim lab start {lab.number} DIR"
        )
    return path


def _text(tasks: Path) -> str:
    return files.read(tasks, MOST_MEGABYTES).decode("utf-8", errors="replace")


def _complete(lab: Lab, given: dict[str, Any], ranks: int, tasks: str) -> dict[str, Any]:
    """The arguments of `real`: those given, and defaults for `seconds` and `unwritten` if `real` takes them."""
    tree = ast.parse(files.read(lab.folder / RANKS, MOST_MEGABYTES))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION]
    if not found:
        raise InputError.of("lab", lab.key, f"has nothing to run: no {FUNCTION} in its {RANKS}", "take another lab")
    names = [one.arg for one in (*found[0].args.args, *found[0].args.kwonlyargs)][1:]
    if unknown := [name for name in given if name not in names]:
        cure = f"take one of {', '.join(names)}" if names else "leave it out"
        raise InputError.of(f"argument of {FUNCTION}", unknown[0], f"is none of {lab.key}'s", cure)
    known: dict[str, Any] = {}
    if SECONDS in names:
        known[SECONDS] = _drawn(lab, ranks)
    if UNWRITTEN in names:
        known[UNWRITTEN] = blocked(tasks)
    return known | given


def _scenario(lab: Lab, ranks: int) -> Scenario:
    return Scenario.load(lab.folder / SCENARIO).replacing({"cluster.workers": ranks})


def _drawn(lab: Lab, ranks: int) -> list[list[float]]:
    scenario = _scenario(lab, ranks)
    times = scenario.compute_times()
    return [times.first(rank, scenario.steps)[: scenario.steps].tolist() for rank in range(ranks)]
