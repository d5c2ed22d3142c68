"""What runs in the ranks: the student's server and workers, whose gradients only they know, or a script of messages."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank
from distsim.testbed.rank_conversation import conversed


def converse(tasks: ModuleType, *, turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Takes part in one training after the other: as the student's server or worker, or by a script of messages."""

    def serve(parameters: torch.Tensor, **arguments: Any) -> Any:
        bounded = "staleness" in arguments
        return (tasks.serve_stale_synchronous if bounded else tasks.serve_asynchronous)(parameters, **arguments)

    return conversed(turns, serve, lambda *given: tasks.work(*given))


def predict(tasks: ModuleType, *, cases: list[list[int]]) -> dict[str, Any]:
    """The student's formula, for pairs of workers and bound."""
    return {"staleness": [float(tasks.largest_staleness(workers, bound)) for workers, bound in cases]}


def real(
    tasks: ModuleType, seconds: list[list[float]], updates: int | None = None, size: int = 1024,
    unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """A run for real, in which workers sleep for their seconds, again and again.

    At the server: the mean staleness of all updates, and of those by the fast, who are all workers but the last.
    """
    if {"serve_asynchronous", "work"} & set(unwritten):
        return {}
    me, last = dist.get_rank(), dist.get_world_size() - 1
    parameters = torch.zeros(size, dtype=torch.float64)
    if me == last:
        updates = updates or last * len(seconds[0])
        used = tasks.serve_asynchronous(parameters, updates, 0.01)
        fast = [stale for number, stale in used if number != last - 1]
        return {
            "mean_staleness": sum(stale for _, stale in used) / updates,
            "of_the_fast": sum(fast) / max(len(fast), 1),
        }

    def gradient(parameters: torch.Tensor, push: int) -> torch.Tensor:
        rank.busy(seconds[me][push % len(seconds[me])])
        return parameters

    tasks.work(parameters, gradient)
    return {}
