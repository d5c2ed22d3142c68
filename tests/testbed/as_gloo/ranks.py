"""A small program for each function of torch.distributed: `try_` and its name. Each runs on gloo and on the testbed."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from distsim.testbed import rank

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32, torch.int64)
GRACE_SECONDS = 0.05
MOST_SECONDS = 20.0


def every_program(tasks: ModuleType, *, names: list[str]) -> dict[str, Any]:  # noqa: ARG001
    """What each program gives, or its error."""
    found = {}
    for name in names:
        dist.barrier()
        print(name, flush=True)  # the last name tells where a failed run stood
        try:
            found[name] = globals()[f"try_{name}"](dist.get_rank(), dist.get_world_size())
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            found[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    dist.barrier()
    return found


def _mine(me: int, size: int = 4, kind: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.arange(size) + 3 * me + 1).to(kind)


def _empty(ranks: int, size: int = 4) -> list[torch.Tensor]:
    return [torch.zeros(size) for _ in range(ranks)]


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype is torch.bfloat16 else tensor


def try_all_reduce(me: int, ranks: int) -> Any:  # noqa: ARG001
    found = {}
    for kind in TYPES:
        for operation in ("SUM", "PRODUCT", "MIN", "MAX"):
            tensor = _mine(me, kind=kind)
            dist.all_reduce(tensor, op=getattr(ReduceOp, operation))
            found[f"{operation} {kind}"] = _plain(tensor)
    for operation in ("BAND", "BOR", "BXOR"):
        tensor = _mine(me, kind=torch.int64)
        dist.all_reduce(tensor, op=getattr(ReduceOp, operation))
        found[operation] = tensor
    complex_tensor = torch.complex(_mine(me), -_mine(me))
    dist.all_reduce(complex_tensor)
    return found | {"complex": torch.view_as_real(complex_tensor), "number": _sum(torch.tensor(me + 0.5))}


def _sum(tensor: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(tensor)
    return tensor


def try_all_reduce_coalesced(me: int, ranks: int) -> Any:  # noqa: ARG001
    first, second = [_mine(me), _mine(me, 3)], [_mine(me, 2), torch.full((2, 2), float(me))]
    dist.all_reduce_coalesced(first)
    values = dist.all_reduce_coalesced(second, async_op=True).wait()
    return [first, second, values]


def try_reduce(me: int, ranks: int) -> Any:  # noqa: ARG001
    tensor = _mine(me)
    dist.reduce(tensor, dst=1, op=ReduceOp.MAX)
    return tensor if me == 1 else None  # what the others hold is not defined


def try_broadcast(me: int, ranks: int) -> Any:  # noqa: ARG001
    tensors = [_mine(me, kind=kind) for kind in (*TYPES, torch.bool)]
    for tensor in tensors:
        dist.broadcast(tensor, src=2)
    work = dist.broadcast(number := torch.tensor(float(me)), src=1, async_op=True)
    work.wait()
    return [*map(_plain, tensors), number]


def try_order_in_memory(me: int, ranks: int) -> Any:
    """Columns in place of rows in memory on one rank, and columns of a larger tensor on all."""

    def mine(number: float = 0.0) -> torch.Tensor:
        rows = torch.arange(6.0).reshape(2, 3) + 10 * me + number
        return rows.t().contiguous().t() if me == 1 else rows

    summed, sent, largest, own = mine(), mine(1.0), mine(2.0), mine(3.0)
    dist.all_reduce(summed)
    dist.broadcast(sent, src=1)
    dist.reduce(largest, dst=1, op=ReduceOp.MAX)
    into = [torch.zeros(2, 3) for _ in range(ranks)]
    dist.all_gather(into, own)
    wider = torch.arange(12.0).reshape(2, 6) + 100 * me
    dist.all_reduce(wider[:, :3])
    refused = []
    for call in (lambda: dist.send(wider[:, :3], (me + 1) % ranks), lambda: dist.recv(wider[:, :3], (me - 1) % ranks)):
        try:
            call()
        except RuntimeError as error:
            refused.append("has to be contiguous" in str(error))
    return [summed, sent, largest if me == 1 else None, into, wider, refused]


def try_empty_messages(me: int, ranks: int) -> Any:
    """A tensor without numbers comes from a named source alone."""
    into = torch.zeros(2, 0)
    wait = dist.isend(torch.zeros(2, 0), (me + 1) % ranks)
    dist.recv(into, (me - 1) % ranks)
    wait.wait()
    try:
        dist.recv(into)
    except RuntimeError:
        return into, "refused"
    return into, "received"


def try_all_gather(me: int, ranks: int) -> Any:
    into = _empty(ranks)
    dist.all_gather(into, _mine(me))
    return into


def try_all_gather_coalesced(me: int, ranks: int) -> Any:
    into = [[torch.zeros(4), torch.zeros(2, 3)] for _ in range(ranks)]
    dist.all_gather_coalesced(into, [_mine(me), torch.full((2, 3), float(me))])
    return into


def try_all_gather_into_tensor(me: int, ranks: int) -> Any:
    flat, rows = torch.zeros(4 * ranks), torch.zeros(2 * ranks, 2)
    dist.all_gather_into_tensor(flat, _mine(me))
    dist.all_gather_into_tensor(rows, _mine(me).view(2, 2))
    return [flat, rows]


def try_all_gather_single(me: int, ranks: int) -> Any:
    into = torch.zeros(4 * ranks)
    dist.all_gather_single(into, _mine(me))
    return into


def try_gather(me: int, ranks: int) -> Any:
    into = _empty(ranks) if me == 1 else None
    dist.gather(_mine(me), into, dst=1)
    return into


def try_scatter(me: int, ranks: int) -> Any:
    into = torch.zeros(4)
    dist.scatter(into, [_mine(10 * k) for k in range(ranks)] if me == 2 else None, src=2)
    return into


def try_reduce_scatter(me: int, ranks: int) -> Any:
    into = torch.zeros(4)
    dist.reduce_scatter(into, [_mine(me + k) for k in range(ranks)])
    return into


def try_reduce_scatter_tensor(me: int, ranks: int) -> Any:
    into = torch.zeros(2)
    dist.reduce_scatter_tensor(into, _mine(me, 2 * ranks))
    return into


def try_reduce_scatter_single(me: int, ranks: int) -> Any:
    into = torch.zeros(2)
    dist.reduce_scatter_single(into, _mine(me, 2 * ranks))
    return into


def try_all_to_all(me: int, ranks: int) -> Any:
    into = _empty(ranks)
    dist.all_to_all(into, [_mine(me + 10 * k) for k in range(ranks)])
    return into


def try_all_to_all_single(me: int, ranks: int) -> Any:
    even, uneven = torch.zeros(2 * ranks), torch.zeros(ranks * (me + 1))
    dist.all_to_all_single(even, _mine(me, 2 * ranks))
    dist.all_to_all_single(uneven, _mine(me, ranks * (ranks + 1) // 2), [me + 1] * ranks, [k + 1 for k in range(ranks)])
    return [even, uneven]


def try_barrier(me: int, ranks: int) -> Any:  # noqa: ARG001
    dist.barrier()
    return dist.barrier(async_op=True).wait()


def try_monitored_barrier(me: int, ranks: int) -> Any:  # noqa: ARG001
    dist.monitored_barrier()
    return dist.monitored_barrier(timeout=timedelta(seconds=60), wait_all_ranks=True)


def try_send(me: int, ranks: int) -> Any:
    into = torch.zeros(4)
    if me == 0:
        dist.send(_mine(me), 1, tag=7)
    if me == 1:
        source = dist.recv(into, 0, tag=7)
        return [into, source]
    return ranks


def try_recv(me: int, ranks: int) -> Any:
    """From anybody: the others follow one another, so that the order is known."""
    if me == 0:
        first, second = torch.zeros(4), torch.zeros(6)
        sources = [dist.recv(first)]
        dist.send(first, 2)
        return [*sources, dist.recv(second), first, second]
    if me == ranks - 1:
        dist.recv(torch.zeros(4), 0)
        dist.send(_mine(me), 0)
    elif me == 1:
        dist.send(_mine(me), 0)
    return None


def try_isend(me: int, ranks: int) -> Any:
    """Several to the same rank are on their way at once, and were asked for before."""
    right, left = (me + 1) % ranks, (me - 1) % ranks
    into = [torch.zeros(4) for _ in range(6)]
    receiving = [dist.irecv(tensor, left, tag=number % 2) for number, tensor in enumerate(into)]
    dist.barrier()
    sending = [dist.isend(_mine(me + 100 * number), right, tag=number % 2) for number in range(6)]
    for work in (*reversed(sending), *receiving):
        work.wait()
    return [into, [work.source_rank() for work in receiving]]


def try_irecv(me: int, ranks: int) -> Any:
    """Tags are matched, not the order among tags; a smaller message fills the first part."""
    small, large = torch.zeros(4), torch.zeros(6)
    if me == 0:
        works = [dist.isend(_mine(5), 1, tag=1), dist.isend(_mine(9), 1, tag=2)]
    elif me == 1:
        works = [dist.irecv(large, 0, tag=2), dist.irecv(small, 0, tag=1)]
    else:
        works = []
    return [[work.wait() for work in works], small, large[:4], ranks]


def try_batch_isend_irecv(me: int, ranks: int) -> Any:
    into = torch.zeros(4)
    operations = [
        dist.P2POp(dist.isend, _mine(me), (me + 1) % ranks),
        dist.P2POp(dist.irecv, into, (me - 1) % ranks),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return into


def try_all_gather_object(me: int, ranks: int) -> Any:
    into = [None] * ranks
    dist.all_gather_object(into, {"rank": me, "text": "x" * me})
    return into


def try_gather_object(me: int, ranks: int) -> Any:
    into = [None] * ranks if me == 0 else None
    dist.gather_object({"rank": me}, into, dst=0)
    return into


def try_scatter_object_list(me: int, ranks: int) -> Any:
    into = [None]
    dist.scatter_object_list(into, [{"for": k} for k in range(ranks)] if me == 1 else None, src=1)
    return into


def try_broadcast_object_list(me: int, ranks: int) -> Any:
    objects = [{"from": me}, "text"] if me == ranks - 1 else [None, None]
    dist.broadcast_object_list(objects, src=ranks - 1)
    return objects


def try_send_object_list(me: int, ranks: int) -> Any:
    if me == 0:
        dist.send_object_list([{"a": 1}, "b"], 2)
    if me == 2:
        objects = [None, None]
        return [dist.recv_object_list(objects, 0), objects]
    return ranks


def try_recv_object_list(me: int, ranks: int) -> Any:
    if me == 1:
        dist.send_object_list([me], 0)
    if me == 0:
        objects = [None]
        return [dist.recv_object_list(objects, 1), objects]
    return ranks


def try_new_group(me: int, ranks: int) -> Any:
    group = dist.new_group([0, ranks - 1])
    if me not in (0, ranks - 1):
        return dist.get_rank(group)
    tensor, into = _mine(me), torch.zeros(4)
    dist.all_reduce(tensor, group=group)
    if me == 0:
        dist.send(tensor, ranks - 1, group=group)
    else:
        dist.recv(into, 0, group=group)
    dist.broadcast(into, src=ranks - 1, group=group)
    return [tensor, into, dist.get_rank(group), dist.get_world_size(group), dist.get_process_group_ranks(group)]


def try_new_subgroups(me: int, ranks: int) -> Any:  # noqa: ARG001
    group, groups = dist.new_subgroups(group_size=1)
    return [_sum(_mine(me)), dist.get_world_size(group), len(groups)]


def try_new_subgroups_by_enumeration(me: int, ranks: int) -> Any:
    group, _ = dist.new_subgroups_by_enumeration([[0, 1], list(range(2, ranks))])
    tensor = _mine(me)
    dist.all_reduce(tensor, group=group)
    return [tensor, dist.get_global_rank(group, 0), dist.get_group_rank(group, me)]


def try_init_device_mesh(me: int, ranks: int) -> Any:
    mesh = dist.init_device_mesh("cpu", (1, ranks), mesh_dim_names=("one", "all"))
    tensor = _mine(me)
    dist.all_reduce(tensor, group=mesh.get_group("all"))
    return [tensor, mesh.get_local_rank("all")]


def try_split_group(me: int, ranks: int) -> Any:  # noqa: ARG001
    return type(dist.split_group(split_ranks=[[0], list(range(1, ranks))])).__name__


def try_shrink_group(me: int, ranks: int) -> Any:  # noqa: ARG001
    return type(dist.shrink_group([ranks - 1])).__name__


def try_get_rank(me: int, ranks: int) -> Any:
    return [me, ranks, dist.is_initialized(), dist.get_pg_count() > 0, dist.get_process_group_ranks(dist.group.WORLD)]


def try_work(me: int, ranks: int) -> Any:
    """What a begun operation offers."""
    tensor, into = _mine(me), torch.zeros(4)
    work = dist.all_reduce(tensor, async_op=True)
    while not work.is_completed():
        rank.busy(1e-4)
    found: list[Any] = [tensor.clone(), work.wait(), work.is_success(), work.is_completed()]
    works = [dist.isend(_mine(me), (me + 1) % ranks), dist.irecv(into, (me - 1) % ranks)]
    found += [[work.wait(timedelta(seconds=60)) for work in works], into]
    return found


def try_future(me: int, ranks: int) -> Any:
    """A future's value, what runs after it, and whether that has run when the operation has been waited for."""
    tensors = [_mine(me + number) for number in range(4)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    mean = works[0].get_future().then(lambda future: future.value()[0] / ranks)
    twice = works[1].get_future().then(lambda future: future.value()[0].mul_(2)).then(lambda future: future.value() + 1)
    works[1].wait()
    found = [mean.wait(), tensors[1].clone(), twice.value(), twice.done()]
    both = torch.futures.collect_all([works[2].get_future(), works[3].get_future()]).wait()
    return [*found, [future.value() for future in both], torch.futures.wait_all([works[3].get_future()])]


def try_future_that_goes_on(me: int, ranks: int) -> Any:  # noqa: ARG001
    """A callback that begins a further exchange while this rank waits for another one.

    The further exchange has a group of its own: in one group, gloo pairs operations in the order in which each rank
    calls them, and the callback may run before a rank's first barrier and after another rank's.
    """
    first, second, begun, group = _mine(me), _mine(me), [], dist.new_group()
    future = dist.all_reduce(first, async_op=True).get_future()
    future.then(lambda _future: begun.append(dist.all_reduce(second, group=group, async_op=True)))
    dist.barrier()
    dist.barrier()
    while not begun:
        rank.busy(1e-4)
    begun[0].wait()
    return [first, second]


def try_data_parallel(me: int, ranks: int) -> Any:
    """torch's own DistributedDataParallel, plain and with a hook."""
    found = []
    for hooked in (False, True):
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
        if hooked:

            def hook(_state, bucket):  # type: ignore[no-untyped-def] # torch compares annotations with its classes
                future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
                return future.then(lambda done: done.value()[0].div_(ranks))

            model.register_comm_hook(None, hook)
        model(torch.full((1, 3), float(me))).sum().backward()
        found.append(model.module.weight.grad)
    return found


def _pair(begin: Callable[[int], Any]) -> Callable[[int, int], Any]:
    """From rank 0 to rank 1; rank 2 looks on."""
    return lambda me, _ranks: begin(me) if me in (0, 1) else None


WAITING: dict[str, Callable[[int, int], Any]] = {
    "send": _pair(lambda me: dist.send(_mine(me), 1) if me == 0 else dist.recv(torch.zeros(4), 0)),
    "send of much": _pair(lambda me: dist.send(_mine(me, 10**6), 1) if me == 0 else dist.recv(torch.zeros(10**6), 0)),
    "isend and wait": _pair(
        lambda me: dist.isend(_mine(me), 1).wait() if me == 0 else dist.irecv(torch.zeros(4), 0).wait()
    ),
    "isend alone": _pair(lambda me: dist.isend(_mine(me), 1) if me == 0 else dist.irecv(torch.zeros(4), 0)),
    **{
        name: lambda me, ranks, name=name: globals()[f"try_{name}"](me, ranks)
        for name in (
            "all_gather", "all_gather_object", "all_to_all", "all_to_all_single", "barrier", "monitored_barrier",
            "reduce_scatter", "all_reduce_coalesced", "all_gather_into_tensor", "reduce_scatter_tensor",
            "broadcast", "reduce", "gather", "scatter",
        )
    },
}  # fmt: skip


def who_waits(tasks: ModuleType, *, early: dict[str, dict[str, list[int]]] | None) -> dict[str, dict[str, list[int]]]:  # noqa: ARG001
    """By operation and late rank: the ranks that return before that rank has begun.

    early: what the testbed found, for gloo, where a rank that returns in time is waited for.
    """
    me, ranks = dist.get_rank(), dist.get_world_size()
    found: dict[str, dict[str, list[int]]] = {}
    kept = []
    for name, begin in WAITING.items():
        for late in range(ranks):
            dist.barrier()
            began = rank.now()
            before: list[int] = []
            if me == late:
                before = _watch(name, late, early[name][str(late)]) if early else rank.busy(1.0) or []
            kept.append(begin(me, ranks))
            Path(f"{name}-{late}-{me}").touch()
            at_once = torch.tensor([float(rank.now() - began < 1.0 and me != late)])
            everybody = _empty(ranks, 1)
            dist.all_gather(everybody, at_once)
            if not early:
                before = [other for other in range(ranks) if everybody[other].item()]
            found.setdefault(name, {})[str(late)] = before
        for work in kept:
            if isinstance(work, dist.Work):
                work.wait()
        kept.clear()
    return found


def _watch(name: str, late: int, expected: list[int]) -> list[int]:
    """The ranks that have returned, once those have of which it is expected and a little time has passed."""
    until = time.monotonic() + MOST_SECONDS
    others = [other for other in range(dist.get_world_size()) if other != late]
    back: list[int] = []
    while not set(expected) <= set(back) and time.monotonic() < until:
        time.sleep(0.01)
        back = [other for other in others if Path(f"{name}-{late}-{other}").exists()]
    time.sleep(GRACE_SECONDS)
    return [other for other in others if Path(f"{name}-{late}-{other}").exists()]
