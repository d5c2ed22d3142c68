"""What runs in the ranks: it calls the student's functions, and hands back what they left."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank

REPEATS = 5
ALL_REDUCES = ("ring_all_reduce", "server_all_reduce")


def chunks(tasks: ModuleType, *, cases: list[dict[str, torch.Tensor]]) -> dict[str, Any]:
    """As many chunks of each tensor as there are marks, and the tensor after a mark was written over each chunk."""
    found = []
    for case in cases:
        parts = tasks.chunks(case["tensor"], len(case["marks"]))
        before = [part.clone() for part in parts]
        for part, mark in zip(parts, case["marks"], strict=False):
            part.fill_(mark)
        found.append({"chunks": before, "tensor": case["tensor"]})
    return {"cases": found}


def reduce_scatter(tasks: ModuleType, *, parts: list[torch.Tensor]) -> dict[str, Any]:
    """This rank's own chunk afterwards."""
    tasks.reduce_scatter(parts)
    return {"own": parts[dist.get_rank()]}


def all_gather(tasks: ModuleType, *, parts: list[torch.Tensor]) -> dict[str, Any]:
    """All chunks afterwards."""
    tasks.all_gather(parts)
    return {"parts": parts}


def all_reduce(tasks: ModuleType, *, function: str, tensors: list[torch.Tensor]) -> dict[str, Any]:
    """The very tensors that were given, one after the other, after the ring or the server."""
    for tensor in tensors:
        getattr(tasks, function)(tensor)
    return {"tensors": tensors}


def predictions(tasks: ModuleType, *, cases: list[dict[str, float]]) -> dict[str, Any]:
    """What the student's formulas say."""
    return {
        "bytes": [[_bytes(tasks, name, case) for name in ("ring_bytes", "server_bytes")] for case in cases],
        "seconds": [
            [float(getattr(tasks, name)(**case)) for name in ("ring_seconds", "server_seconds")] for case in cases
        ],
    }


def real(tasks: ModuleType, num_bytes: int = 16_000_000, unwritten: Sequence[str] = ()) -> dict[str, Any]:
    """Seconds of each all-reduce of a tensor of so many bytes for real, several times in turn."""
    tensor = torch.ones(num_bytes // 4, device="cuda" if "nccl" in dist.get_backend_config() else "cpu")
    seconds: dict[str, list[float]] = {name: [] for name in ALL_REDUCES if name not in unwritten}
    for repeat in range(REPEATS + 1):
        for name in seconds:
            dist.barrier()
            began = rank.now()
            getattr(tasks, name)(tensor)
            if tensor.is_cuda:
                torch.cuda.synchronize()
            if repeat:  # the first exchange also connects the ranks
                seconds[name].append(rank.now() - began)
            tensor.fill_(1.0)
    return seconds


def _bytes(tasks: ModuleType, name: str, case: dict[str, float]) -> float:
    return float(getattr(tasks, name)(case["num_bytes"], case["ranks"]))
