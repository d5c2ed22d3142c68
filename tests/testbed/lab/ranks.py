"""Drivers of the tests: what a lab's ranks.py is to its checks."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from distsim.testbed import rank

ON_THEIR_WAY = []


def ring(
    tasks: ModuleType, *, values: torch.Tensor, seconds: float, function: str = "ring_all_reduce"
) -> dict[str, Any]:
    rank.busy(seconds)
    rank.note("before", dist.get_rank())
    getattr(tasks, function)(values)
    return {"sum": values, "now": rank.now()}


def student(tasks: ModuleType, *, function: str, **arguments: Any) -> Any:
    return getattr(tasks, function)(**arguments)


def optimizer(tasks: ModuleType) -> dict[str, Any]:  # noqa: ARG001
    before = set(sys.modules)
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.ones(1)
    torch.optim.SGD([parameter], lr=0.5).step()
    return {"parameter": parameter, "imported": len(set(sys.modules) - before)}


def sends_and_goes(tasks: ModuleType, *, keeps: bool) -> list[float]:  # noqa: ARG001
    """Gloo forgets a message whose request nobody holds any more."""
    tensor = torch.tensor([7.0])
    if dist.get_rank() == 0:
        request = dist.isend(tensor, dst=1)
        if keeps:
            ON_THEIR_WAY.append(request)
        sys.stdout.write("gone")
    else:
        rank.busy(0.5)
        dist.recv(tensor.zero_(), src=0)
    return tensor.tolist()


def every_collective(tasks: ModuleType) -> dict[str, Any]:  # noqa: ARG001
    me, ranks = dist.get_rank(), dist.get_world_size()
    found: dict[str, Any] = {}

    def mine(value: float = 0.0) -> torch.Tensor:
        return torch.full((2,), me + value)

    def each() -> list[torch.Tensor]:
        return [torch.zeros(2) for _ in range(ranks)]

    found["all_reduce"] = mine(1.0)
    dist.all_reduce(found["all_reduce"])
    for name, operation in (("max", dist.ReduceOp.MAX), ("min", dist.ReduceOp.MIN), ("product", dist.ReduceOp.PRODUCT)):
        found[name] = mine(1.0)
        dist.all_reduce(found[name], op=operation)
    found["number"] = torch.tensor(float(me))
    dist.all_reduce(found["number"])
    found["broadcast"] = mine()
    dist.broadcast(found["broadcast"], src=1)
    found["all_gather"] = each()
    dist.all_gather(found["all_gather"], mine())
    found["gather"] = each() if me == 0 else None
    dist.gather(mine(), found["gather"], dst=0)
    found["scatter"] = torch.zeros(2)
    dist.scatter(found["scatter"], [torch.full((2,), 10.0 * k) for k in range(ranks)] if me == 2 else None, src=2)
    found["reduce_scatter"] = torch.zeros(2)
    dist.reduce_scatter(found["reduce_scatter"], [mine(10.0 * k) for k in range(ranks)])
    found["reduce"] = mine()
    dist.reduce(found["reduce"], dst=1)
    if me != 1:
        del found["reduce"]  # what it then holds is not defined
    found["all_to_all"] = each()
    dist.all_to_all(found["all_to_all"], [mine(10.0 * k) for k in range(ranks)])
    found["all_to_all_single"] = torch.zeros(ranks)
    dist.all_to_all_single(found["all_to_all_single"], torch.arange(ranks, dtype=torch.float32) + 10 * me)
    found["objects"] = [None] * ranks
    dist.all_gather_object(found["objects"], {"rank": me})
    dist.barrier()
    some = dist.new_group([0, 2])
    if me in (0, 2):
        found["group"] = mine()
        dist.all_reduce(found["group"], group=some)
    if me == 0:
        dist.send(mine(), dst=1, tag=3)
    if me == 1:
        found["received"] = torch.zeros(2)
        found["source"] = dist.recv(found["received"], tag=3)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    model(torch.full((1, 3), float(me))).sum().backward()
    found["gradient"] = model.module.weight.grad
    dist.destroy_process_group()
    return found


def searched(tasks: ModuleType, *, argument: str) -> dict[str, Any]:
    """What the student's file, which is search.py, finds in this process. argument: a secret of this rank alone."""
    loaded = sorted(str(getattr(module, "__file__", "")) for module in sys.modules.values())
    found = {"memory": sorted(tasks.in_memory()), "processes": sorted(tasks.in_processes())}
    return found | {"argument": argument, "loaded": [path for path in loaded if path.endswith("/checks.py")]}
