"""The memory that a step of a model holds: on a GPU what torch allocates, elsewhere the tensors of its operations."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from distsim.runtime.profiling.own_model import OwnModel


def peak_bytes_of(own: OwnModel) -> int:
    """The most bytes held in a step: parameters, gradients, buffers, the batch, and what the operations make.

    Gradients are there from step to step, as in real runs. Elsewhere than on a GPU, what an operation takes for itself
    alone does not count.
    """
    if own.batch[0].is_cuda:
        torch.cuda.reset_peak_memory_stats()
        own.backward(own.loss())
        return int(torch.cuda.max_memory_allocated())
    for parameter in own.layers.values():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    kept = _storages([*own.module.parameters(), *own.module.buffers(), *own.batch])
    gradients = sum(one.numel() * one.element_size() for one in own.layers.values())
    made = MadeTensors()
    with made:
        own.backward(own.loss())
    return sum(storage.nbytes() for storage in kept.values()) + gradients + made.peak_bytes


def dense(values: object) -> Iterator[torch.Tensor]:
    """The tensors among an operation's arguments or results that have memory of their own; a sparse one has none."""
    for one in tree_iter(values):
        if isinstance(one, torch.Tensor) and one.layout is torch.strided:
            yield one


class MadeTensors(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch
    """Counts the tensors that operations make, as long as they are there. peak_bytes: the most at one moment."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch
        self.peak_bytes = 0
        self._now = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operation, and counts what it made."""
        made = func(*args, **(kwargs or {}))
        there, after = _storages((args, kwargs)), _storages(made)
        for address in after.keys() - there.keys():
            self._count(after[address])
        return made

    def _count(self, storage: torch.UntypedStorage) -> None:
        num_bytes = storage.nbytes()
        self._now += num_bytes
        self.peak_bytes = max(self.peak_bytes, self._now)
        weakref.finalize(storage, self._forget, num_bytes)

    def _forget(self, num_bytes: int) -> None:
        self._now -= num_bytes


def _storages(values: object) -> dict[int, torch.UntypedStorage]:
    """The memory of tensors, each once, by its address."""
    storages = (one.untyped_storage() for one in dense(values))
    return {storage.data_ptr(): storage for storage in storages}
