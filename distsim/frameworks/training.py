"""Really trains in one of the ways: torchrun starts the ranks, and their records come back.

run = trained("lightning_way", workers=2, updates=50)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from os import environ
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distsim.errors import InputError, RunError
from distsim.extras import need
from distsim.runtime.launch.launcher import loopback
from distsim.runtime.launch.owned_process import started

# The ways, and the package that each of them needs.
WAYS = {"bare": "torch", "horovod_style": "torch", "lightning_way": "lightning", "accelerate_way": "accelerate"}
DEADLINE_SECONDS = 120.0


@dataclass(frozen=True)
class Run:
    """losses: a row for each rank, a column for each update. step_seconds: of rank 0, from update to update.

    parameters: a row for each rank, after the last update.
    """

    losses: NDArray[np.float64]
    step_seconds: NDArray[np.float64]
    parameters: NDArray[np.float64]


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
    )
