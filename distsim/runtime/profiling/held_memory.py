"""The memory that a step of a model holds: on a GPU what torch allocates, elsewhere the tensors that are known."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from distsim.runtime.profiling.own_model import OwnModel


def peak_bytes_of(own: OwnModel) -> int:
    """The most bytes held in a step: parameters, gradients, buffers, the batch, and what backward needs of forward.

    A model that recomputes activations (`torch.utils.checkpoint`) keeps few of them from forward. The most that it
    recomputes at once is added: exact where the parts of the model are alike, and otherwise an upper bound.
    """
    if own.batch[0].is_cuda:
        torch.cuda.reset_peak_memory_stats()
        own.backward(own.loss())
        return int(torch.cuda.max_memory_allocated())
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        for one in dense(tensor):
            kept[one.untyped_storage().data_ptr()] = one.untyped_storage().nbytes()
        return tensor

    held = [*own.module.parameters(), *own.module.buffers(), *own.batch]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = own.loss()
    for tensor in held:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    recomputed = Recomputed()
    with recomputed:
        own.backward(loss)
    gradients = sum(one.numel() * one.element_size() for one in own.layers.values())
    return sum(kept.values()) + gradients + recomputed.peak_bytes


def dense(values: object) -> Iterator[torch.Tensor]:
    """The tensors among an operation's arguments or results that have memory of their own; a sparse one has none."""
    for one in tree_iter(values):
        if isinstance(one, torch.Tensor) and one.layout is torch.strided:
            yield one


class Recomputed(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch
    """Counts the tensors that are made while gradients are recorded. In a backward, these are recomputed activations.

    The gradient of the loss is made then as well; it is a scalar, and scalars do not count.
    peak_bytes: the most bytes of such tensors at one moment.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch
        self.peak_bytes: int = 0
        self._bytes: dict[int, int] = {}  # by address, of the storages that are there now

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operation, and counts what it made."""
        made = func(*args, **(kwargs or {}))
        if torch.is_grad_enabled():
            given = {one.untyped_storage().data_ptr() for one in dense((args, kwargs))}
            for one in dense(made):
                if one.dim() and one.untyped_storage().data_ptr() not in given:
                    self._count(one.untyped_storage())
        return made

    def _count(self, storage: torch.UntypedStorage) -> None:
        self._bytes[storage.data_ptr()] = storage.nbytes()
        weakref.finalize(storage, self._bytes.pop, storage.data_ptr(), None)
        self.peak_bytes = max(self.peak_bytes, sum(self._bytes.values()))
