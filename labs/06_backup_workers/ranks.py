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
    return conversed(turns, lambda *given, **named: tasks.serve(*given, **named), lambda *given: tasks.work(*given))


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
    me, last = dist.get_rank(), dist.get_world_size() - 1
    updates = len(seconds[0])
    parameters = torch.zeros(size, dtype=torch.float64)
    dist.barrier()
    before = rank.now()
    if me == last:
        tasks.serve(parameters, updates, wait_for or last - 1, 0.1)
    else:

        def gradient(parameters: torch.Tensor, version: int) -> torch.Tensor:
            rank.busy(seconds[me][version])
            return parameters

        tasks.work(parameters, gradient)
    return {"step_seconds": (rank.now() - before) / updates}
