"""Really trains in one of the ways: torchrun starts the ranks, and their records come back.

run = trained("lightning_way", workers=2, updates=50)
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from os import environ
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distsim.errors import InputError, RunError
from distsim.extras import need
from distsim.files import write_text
from distsim.runtime.launch.launcher import loopback
from distsim.runtime.launch.owned_process import started

# The ways, and the package that each of them needs.
WAYS = {"bare": "torch", "horovod_style": "torch", "lightning_way": "lightning", "accelerate_way": "accelerate"}
DEADLINE_SECONDS = 120.0
RECORDED = Path(__file__).with_name("recorded.json")
RECORDED_SIZES = ((2, 200), (4, 23))  # ranks and updates, as in chapter 11


@dataclass(frozen=True)
class Run:
    """losses: a row for each rank, a column for each update. step_seconds: of rank 0, from update to update.

    parameters: a row for each rank, after the last update; none in a recorded run. final_loss: of rank 0's parameters
    over all training samples. recorded: whether it was run on another day, on another machine.
    """

    losses: NDArray[np.float64]
    step_seconds: NDArray[np.float64]
    parameters: NDArray[np.float64]
    final_loss: float
    recorded: bool = False


def trained(way: str, workers: int = 2, updates: int = 50) -> Run:
    """Trains on so many ranks of this machine, with one thread each.

    Raises InputError for an unknown way, for a number below 1, and where the way's package is missing. Raises RunError
    where a rank fails or the deadline passes.
    """
    if way not in WAYS:
        raise InputError.of("way", way, f"must be one of {', '.join(WAYS)}", "choose one of them")
    for name, value in (("workers", workers), ("updates", updates)):
        if value < 1:
            raise InputError.of(name, value, "must be at least 1", "write 2")
    need("torch", "a real run")
    need(WAYS[way], f"the training by {way}")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers)]
    with tempfile.TemporaryDirectory(prefix="distsim-frameworks-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        with (
            (folder / "output.log").open("wb") as output,
            started(
                [sys.executable, *torchrun, "-m", "distsim.frameworks.rank", way, str(updates), made],
                environment={"GLOO_SOCKET_IFNAME": loopback()} | environ | {"OMP_NUM_THREADS": "1"},
                stdout=output.fileno(), stderr=output.fileno(), folder=folder, lifeline=False,
            ) as process,
        ):  # fmt: skip
            try:
                process.wait(DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                raise RunError(f"the training by {way}: not finished after {DEADLINE_SECONDS:g} s") from None
        if process.returncode:
            said = (folder / "output.log").read_text("utf-8", errors="replace").strip().splitlines()
            errors = [line for line in said if "Error" in line]
            raise RunError(f"the training by {way}: {(errors or said or ['it said nothing'])[0]}")
        records = [json.loads((folder / f"{rank}.json").read_text("utf-8")) for rank in range(workers)]
    return Run(
        np.array([record["losses"] for record in records]),
        np.diff(records[0]["ends"]),
        np.array([record["parameters"] for record in records]),
        records[0]["final_loss"],
    )


def trained_or_recorded(way: str, workers: int = 2, updates: int = 50) -> Run:
    """As `trained`; where the way's package is missing, the recorded run.

    Raises InputError where the package is missing and no such run was recorded.
    """
    if way not in WAYS or find_spec(WAYS[way]) is not None:
        return trained(way, workers, updates)
    held = json.loads(RECORDED.read_text("utf-8"))
    if (found := held.get(f"{way}, {workers} ranks, {updates} updates")) is None:
        need(WAYS[way], f"the training by {way}")
    return Run(
        np.array(found["losses"]), np.array(found["step_seconds"]), np.empty((workers, 0)), found["final_loss"],
        recorded=True,
    )  # fmt: skip


def script(way: str) -> str:
    """The source of a way's script."""
    return Path(__file__).with_name(f"{way}.py").read_text("utf-8")


def statements(way: str) -> int:
    """How many statements a user writes for this way, without imports and without what notes the losses.

    >>> statements("bare"), statements("lightning_way")
    (13, 12)
    """
    tree = ast.parse(script(way))
    return sum(map(_statements, (node for node in tree.body if getattr(node, "name", "") != "Noting")))


def _statements(node: ast.stmt) -> int:
    """Those of a definition or a loop, itself included. `train` is the place where the script stands."""
    if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node) or _notes(node):
        return 0
    own = not (isinstance(node, ast.FunctionDef) and node.name == "train")
    return own + sum(map(_statements, getattr(node, "body", [])))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _notes(node: ast.stmt) -> bool:
    """Whether a call or a condition is about the record of the losses."""
    about = node.test if isinstance(node, ast.If) else node.value if isinstance(node, ast.Expr) else None
    return about is not None and any(isinstance(one, ast.Name) and one.id == "record" for one in ast.walk(about))


def record() -> None:
    """Runs what chapter 11 runs, and writes the recorded runs anew: `python -m distsim.frameworks.training`."""
    asked = [(way, *sizes) for way in WAYS for sizes in RECORDED_SIZES]
    found = {
        f"{way}, {workers} ranks, {updates} updates": trained(way, workers, updates) for way, workers, updates in asked
    }
    held = {
        name: {
            "losses": run.losses.round(6).tolist(), "step_seconds": run.step_seconds.round(6).tolist(),
            "final_loss": round(run.final_loss, 6),
        }
        for name, run in found.items()
    }  # fmt: skip
    write_text(RECORDED, json.dumps(held))


if __name__ == "__main__":
    record()
