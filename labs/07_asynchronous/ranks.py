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
    learning_rate: float,
    staleness: int | None,
    matrix: torch.Tensor,
    target: torch.Tensor,
    times: list[float],
) -> dict[str, Any]:
    """The last rank serves, the others work. Worker i's gradient at p is matrix (p - target)."""
    if dist.get_rank() == dist.get_world_size() - 1:
        if staleness is None:
            used = tasks.serve_asynchronous(parameters, updates, learning_rate)
        else:
            used = tasks.serve_stale_synchronous(parameters, updates, learning_rate, staleness)
        return {"parameters": parameters, "used": [[int(number) for number in pair] for pair in used]}

    def gradient(at: torch.Tensor, push: int) -> torch.Tensor:
        rank.busy(times[push])
        return matrix @ (at - target)

    tasks.work(parameters, gradient)
    return {"parameters": parameters}


def predict(tasks: ModuleType, *, cases: list[list[int]]) -> dict[str, Any]:
    """The student's formula, for pairs of workers and bound."""
    return {"staleness": [int(tasks.largest_staleness(workers, bound)) for workers, bound in cases]}


def real(
    tasks: ModuleType, seconds: list[list[float]], updates: int | None = None, size: int = 1024,
    unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """A run for real, in which workers sleep for their seconds, again and again; the mean staleness, at the server."""
    if {"serve_asynchronous", "work"} & set(unwritten):
        return {}
    me, server = dist.get_rank(), dist.get_world_size() - 1
    parameters = torch.zeros(size, dtype=torch.float64)
    if me == server:
        updates = updates or server * len(seconds[0])
        used = tasks.serve_asynchronous(parameters, updates, 0.01)
        return {"mean_staleness": sum(stale for _, stale in used) / updates}

    def gradient(at: torch.Tensor, push: int) -> torch.Tensor:
        rank.busy(seconds[me][push % len(seconds[me])])
        return at

    tasks.work(parameters, gradient)
    return {}
