"""Functions of torch that a rank gets in place of torch's own, since those know other back ends only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
import torch.futures
from torch.distributed import distributed_c10d

from distsim.testbed import futures


def replace() -> None:
    """Replaces them in this process."""
    for name, function in (
        ("monitored_barrier", _monitored_barrier),
        ("get_group_rank", _with_type_of_rank(distributed_c10d.get_group_rank)),
    ):
        setattr(dist, name, function)
        setattr(distributed_c10d, name, function)
    torch.futures.collect_all, torch.futures.wait_all = futures.collect_all, futures.wait_all
    register = "_register_comm_hook"
    setattr(dist, register, _with_complete_futures(getattr(dist, register)))


def no_rank(given: Any) -> TypeError:
    """The error about a rank that is no whole number."""
    return TypeError(f"a rank must be an int, and {given!r} is of type {type(given).__name__}")


def _monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:  # noqa: ARG001
    """A barrier. A rank that never comes is named by the testbed, at once."""
    dist.barrier(group)


def _with_type_of_rank(real: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
    """torch says `Global rank 1 is not part of group`, also where the rank is the text "1"."""

    @functools.wraps(real)
    def get_group_rank(group: Any, global_rank: Any) -> int:
        try:
            return real(group, global_rank)
        except ValueError as error:
            if isinstance(global_rank, int):
                raise
            raise no_rank(global_rank) from error

    return get_group_rank


def _with_complete_futures(real: Callable[..., None]) -> Callable[..., None]:
    """DistributedDataParallel waits for the futures of its hooks in C++, where the testbed does not see it."""

    def register(reducer: Any, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        @functools.wraps(hook)
        def complete(state: Any, bucket: Any) -> Any:
            future = hook(state, bucket)
            future.wait()
            return future

        real(reducer, state, complete)

    return register
