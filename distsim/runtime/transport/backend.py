"""The only access to torch.distributed: gloo between all ranks, and NCCL for sums on GPUs.

No other module of the package calls a primitive of torch.distributed, as tests/test_backend_door.py proves. So
runs over another back end, such as MPI or NCCL point to point, need another version of this one module.

Ranks count from 0. Sends are rendezvous: bytes move once the target has posted its receive. Messages between two ranks
match by `tag`. A receive fills its tensor in place. A failed operation raises RuntimeError, on gloo also where the
other rank has gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket

    Bucket = GradBucket
    Mean = torch.futures.Future[torch.Tensor]

Group = dist.ProcessGroup
Pending = dist.Work  # an operation that has begun; `wait()` returns when it is over


@dataclass(frozen=True)
class Meeting:
    """The ranks of a run have met: they share a store of texts by key, and each knows its number among `ranks`."""

    store: Store
    rank: int
    ranks: int


def meet(patience: timedelta, start: int = 0) -> Meeting:
    """Meets the other ranks where torchrun's environment says. start: how many times torchrun had started the ranks.

    torchrun keeps its store when it starts the ranks again, so each start has keys of its own.
    """
    store, rank, ranks = next(rendezvous("env://", timeout=patience))
    store.set_timeout(patience)
    return Meeting(PrefixStore(f"start_{start}", store), rank, ranks)


def join(meeting: Meeting, patience: timedelta, *, gpus: bool = False) -> None:
    """Connects all ranks by gloo. gpus: tensors on GPUs travel by NCCL."""
    name = "cpu:gloo,cuda:nccl" if gpus else "gloo"
    dist.init_process_group(
        name, store=meeting.store, rank=meeting.rank, world_size=meeting.ranks, timeout=patience
    )  # fmt: skip


def leave() -> None:
    """Closes the connections."""
    dist.destroy_process_group()


def group_by_nccl(patience: timedelta) -> Group:
    """A second group of all ranks, which sums on GPUs. All ranks call it."""
    group: Group = dist.new_group(backend="nccl", timeout=patience)
    return group


def group_of(members: Sequence[Sequence[int]]) -> Group:
    """The group of this rank, among groups that hold each rank once. All ranks call it, with the same `members`."""
    made: list[Group] = [dist.new_group(list(ranks)) for ranks in members]
    return next(group for group, ranks in zip(made, members, strict=True) if own_rank() in ranks)


def has_nccl() -> bool:
    """Whether this torch was built with NCCL."""
    return dist.is_nccl_available()


def own_rank() -> int:
    """The number of this rank."""
    return dist.get_rank()


def num_ranks() -> int:
    """How many ranks the run has."""
    return dist.get_world_size()


def send(tensor: torch.Tensor, target: int, tag: int = 0) -> None:
    """Returns when the last byte has left."""
    dist.send(tensor, dst=target, tag=tag)


def receive(tensor: torch.Tensor, source: int, tag: int = 0) -> None:
    """Returns when the next message from `source` is in `tensor`."""
    dist.recv(tensor, src=source, tag=tag)


def receive_from_any(tensor: torch.Tensor) -> int:
    """Receives the message that was sent first, from any rank; returns its source. NCCL has no such receive."""
    return dist.recv(tensor)


def begin_send(tensor: torch.Tensor, target: int, tag: int) -> Pending:
    """Posts a send; `tensor` must not change until it is over."""
    work = dist.isend(tensor, dst=target, tag=tag)
    assert work is not None, "this rank belongs to the group"
    return work


def begin_receive(tensor: torch.Tensor, source: int, tag: int) -> Pending:
    """Posts a receive."""
    work = dist.irecv(tensor, src=source, tag=tag)
    assert work is not None, "this rank belongs to the group"
    return work


def barrier() -> None:
    """Returns when all ranks have called it."""
    dist.barrier()


def all_reduce(tensor: torch.Tensor, group: Group | None = None) -> None:
    """Replaces `tensor` by its sum over all ranks."""
    dist.all_reduce(tensor, group=group)


def largest(value: float) -> float:
    """The largest value that any rank brings, in float64."""
    found = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return found.item()


def all_gather(value: Any) -> list[Any]:
    """The values of all ranks, by rank. A value is whatever pickle takes."""
    found: list[Any] = [None] * num_ranks()
    dist.all_gather_object(found, value)
    return found


def broadcast(value: int, source: int) -> int:
    """The value that `source` brings; the other ranks' values do not count."""
    found = torch.tensor([value])
    dist.broadcast(found, src=source)
    return int(found.item())


def bucket_mean(bucket: Bucket, group: Group | None, *, halved: bool) -> Mean:
    """Begins the all-reduce of a bucket of DistributedDataParallel: a future of the mean over all ranks.

    halved: the numbers travel as float16.
    """
    hook = default_hooks.fp16_compress_hook if halved else default_hooks.allreduce_hook
    return hook(group, bucket)  # type: ignore[arg-type] # None is the default group
