"""What runs in the ranks: workers whose gradients and compute times only they know, and the server."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank


def train(
    tasks: ModuleType,
    *,
    parameters: torch.Tensor,
    updates: int,
    wait_for: int,
    learning_rate: float,
    matrix: torch.Tensor,
    target: torch.Tensor,
    times: list[float],
) -> dict[str, Any]:
    """The last rank serves, the others work. Worker i's gradient at p is matrix (p - target)."""
    if dist.get_rank() == dist.get_world_size() - 1:
        used = tasks.serve(parameters, updates, wait_for, learning_rate)
        return {"parameters": parameters, "used": [[int(worker) for worker in ranks] for ranks in used]}

    def gradient(at: torch.Tensor, version: int) -> torch.Tensor:
        rank.busy(times[version])
        return matrix @ (at - target)

    tasks.work(parameters, gradient)
    return {"parameters": parameters}


def predict(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The student's formula."""
    return {"seconds": [float(tasks.step_seconds(**case)) for case in cases]}


def real(
    tasks: ModuleType, seconds: list[list[float]], wait_for: int | None = None, size: int = 1024,
    unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """A run for real, in which workers sleep for their seconds; its seconds for each update. One is the backup."""
    if {"serve", "work"} & set(unwritten):
        return {}
    me, server = dist.get_rank(), dist.get_world_size() - 1
    updates = len(seconds[0])
    parameters = torch.zeros(size, dtype=torch.float64)
    dist.barrier()
    before = rank.now()
    if me == server:
        tasks.serve(parameters, updates, wait_for or server - 1, 0.1)
    else:

        def gradient(at: torch.Tensor, version: int) -> torch.Tensor:
            rank.busy(seconds[me][version])
            return at

        tasks.work(parameters, gradient)
    return {"step_seconds": (rank.now() - before) / updates}
