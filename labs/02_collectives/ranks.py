"""What runs in the ranks: it calls the student's functions at the times it is told, and hands back what they gave.

Each driver returns, for each of its calls, the result and what stands in the input afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank

Call = dict[str, Any]
Calls = list[Call]
MARK = 77  # what the caller writes into its tensor; the checks know it


def shift(tasks: ModuleType, *, calls: Calls) -> Calls:
    """What came from the rank before."""
    return _one_after_the_other(lambda call: _with_input(call["tensor"], tasks.shift), calls)


def scatter(tasks: ModuleType, *, calls: Calls) -> Calls:
    """This rank's piece."""

    def one(call: Call) -> Call:
        return {
            **_filled(call["like"], lambda piece: tasks.scatter(call["pieces"], piece, call["root"])),
            "input": call["pieces"],
        }

    return _one_after_the_other(one, calls)


def gather(tasks: ModuleType, *, calls: Calls) -> Calls:
    """All pieces on the root."""
    return _one_after_the_other(
        lambda call: _with_input(call["tensor"], lambda piece: tasks.gather(piece, call["root"])), calls
    )


def broadcast(tasks: ModuleType, *, calls: Calls) -> Calls:
    """The root's tensor."""

    return _one_after_the_other(
        lambda call: _filled(call["tensor"], lambda tensor: tasks.broadcast(tensor, call["root"])), calls
    )


def reduce(tasks: ModuleType, *, calls: Calls) -> Calls:
    """The sum on the root."""
    return _one_after_the_other(
        lambda call: _with_input(call["tensor"], lambda tensor: tasks.reduce(tensor, call["root"])), calls
    )


def all_gather(tasks: ModuleType, *, calls: Calls) -> Calls:
    """All pieces on every rank."""
    return _one_after_the_other(lambda call: _with_input(call["tensor"], tasks.all_gather), calls)


def all_reduce(tasks: ModuleType, *, calls: Calls) -> Calls:
    """The sum on every rank."""

    return _one_after_the_other(lambda call: _filled(call["tensor"], tasks.all_reduce), calls)


def real(
    tasks: ModuleType, megabytes: float = 4.0, repeats: int = 20, unwritten: Sequence[str] = ()
) -> dict[str, float]:
    """Seconds of broadcasts for real: by your function, and by a root that sends to one rank after the other."""
    device = torch.device("cuda" if "nccl" in dist.get_backend_config() else "cpu")
    tensor = torch.rand(int(megabytes * 1e6 / 4), device=device)
    functions = {"tree_seconds": tasks.broadcast, "one_by_one_seconds": _one_by_one}
    if "broadcast" in unwritten:
        del functions["tree_seconds"]
    return {name: _median_seconds(function, tensor, repeats) for name, function in functions.items()}


def _one_after_the_other(function: Callable[[Call], Call], calls: Calls) -> Calls:
    """The checks read from the switch's log when each wait began and ended."""
    results = []
    for call in calls:
        rank.busy(max(call["at_seconds"] - rank.now(), 0.0), "wait")
        results.append(function(call))
    rank.busy(0.0, "wait")
    return results


def _with_input(tensor: torch.Tensor, function: Callable[[torch.Tensor], Any]) -> Call:
    """As a caller who goes on with its tensor at once: what was returned must not change with it."""
    result, after = function(tensor), tensor.clone()
    tensor.fill_(MARK)
    return {"result": result, "input": after}


def _filled(tensor: torch.Tensor, function: Callable[[torch.Tensor], Any]) -> Call:
    """As a caller whose tensor is a part of a model: only what is written into its memory arrives there."""
    function(tensor.view(tensor.shape))
    return {"result": tensor}


def _one_by_one(tensor: torch.Tensor, root: int) -> None:
    if root != dist.get_rank():
        dist.recv(tensor, src=root)
        return
    for other in range(dist.get_world_size()):
        if other != root:
            dist.send(tensor, dst=other)


def _median_seconds(function: Callable[[torch.Tensor, int], None], tensor: torch.Tensor, repeats: int) -> float:
    """Of `repeats` calls, each from when all ranks were ready to when the last had returned; the first one warms up."""
    seconds = []
    for _ in range(repeats + 1):
        dist.barrier()
        start = rank.now()
        function(tensor, 0)
        if tensor.is_cuda:
            torch.cuda.synchronize()
        own = torch.tensor([rank.now() - start], device=tensor.device)
        dist.all_reduce(own, op=dist.ReduceOp.MAX)
        seconds.append(float(own))
    return sorted(seconds[1:])[repeats // 2]
