"""What runs in the ranks: it calls the student's functions at the times it is told, and hands back what they left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank

REPEATS = 5
ALL_REDUCES = ("ring_all_reduce", "server_all_reduce")
Call = dict[str, Any]


def chunks(tasks: ModuleType, *, calls: list[Call]) -> list[Call]:
    """As many chunks of each tensor as there are marks, and its whole after a mark was written over each chunk."""
    found = []
    for call in calls:
        tasks.chunks(_row(call).view(-1)[: _row(call).numel() // 2], len(call["marks"]))
        parts = tasks.chunks(_row(call), len(call["marks"]))
        before = [part.clone() for part in parts]
        for part, mark in zip(parts, call["marks"], strict=False):
            part.fill_(mark)
        found.append({"chunks": before, "whole": call["whole"]})
    return found


def reduce_scatter(tasks: ModuleType, *, calls: list[Call]) -> list[Call]:
    """This rank's own chunk afterwards."""

    def one(call: Call) -> Call:
        parts = _in_one_memory(call["parts"])
        own = parts[dist.get_rank()]
        tasks.reduce_scatter(parts)
        return {"own": own}

    return _in_turn(one, calls)


def all_gather(tasks: ModuleType, *, calls: list[Call]) -> list[Call]:
    """All chunks afterwards."""

    def one(call: Call) -> Call:
        given = _in_one_memory(call["parts"])
        parts = list(given)
        tasks.all_gather(given)
        return {"parts": parts}

    return _in_turn(one, calls)


def all_reduce(tasks: ModuleType, *, function: str, calls: list[Call]) -> list[Call]:
    """The very tensors that were given, each with the rows beside it, after the ring or the server."""

    def one(call: Call) -> Call:
        getattr(tasks, function)(_row(call))
        return {"whole": call["whole"]}

    return _in_turn(one, calls)


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


def _in_turn(function: Callable[[Call], Call], calls: list[Call]) -> list[Call]:
    """The checks read from the switch's log when each wait began and ended."""
    results = []
    for number, call in enumerate(calls, start=1):
        rank.busy(max(call["at_seconds"] - rank.now(), 0.0), "wait")
        try:
            results.append(function(call))
        except Exception as error:
            error.add_note(f"This was call {number} of {len(calls)} in one process: {call['told']}.")
            raise
    rank.busy(0.0, "wait")
    return results


def _in_one_memory(parts: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same chunks one after the other in one tensor, as `chunks` gives them."""
    return list(torch.cat(parts).split([len(part) for part in parts]))


def _row(call: Call) -> torch.Tensor:
    """The tensor of a call: one row of a larger tensor, or the whole."""
    whole: torch.Tensor = call["whole"]
    return whole if call["row"] is None else whole[call["row"]]


def _bytes(tasks: ModuleType, name: str, case: dict[str, float]) -> float:
    return float(getattr(tasks, name)(case["num_bytes"], case["ranks"]))
