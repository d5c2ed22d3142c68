"""Really trains in one of the ways, on ranks that torchrun starts.

run = trained("lightning_way", workers=2, updates=50)
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distsim.course.program import run_program
from distsim.errors import InputError
from distsim.extras import need

# The ways, and the package that each of them needs.
WAYS = {"bare": "torch", "horovod_style": "torch", "lightning_way": "lightning", "accelerate_way": "accelerate"}
DEADLINE_SECONDS = 120.0
RANK = """
from distsim.frameworks.task import told
from distsim.frameworks.{way} import train

told(train, {updates})
"""


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
    lines = run_program(RANK.format(way=way, updates=updates), workers, deadline_seconds=DEADLINE_SECONDS)
    records = [json.loads(line) for line in lines]
    return Run(
        np.array([record["losses"] for record in records]),
        np.diff(records[0]["ends"]),
        np.array([record["parameters"] for record in records]),
        records[0]["final_loss"],
    )
