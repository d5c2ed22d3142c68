"""The memory that a step of a model holds: on a GPU what torch allocates, elsewhere the tensors of its operations."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from distsim.runtime.profiling.own_model import OwnModel


class Peak(NamedTuple):
    """Bytes at the moment of a step that holds most.

    passing: of gradients that are not yet added to those kept. frozen: as `frozen_bytes` tells.
    """

    whole: int
    passing: int
    frozen: int


def peak_of(own: OwnModel) -> Peak:
    """The most bytes held in a step: parameters, gradients, buffers, the batch, and what the operations make.

    Gradients are there from step to step, as in real runs, and backward adds each new one to the one kept. A new one is
    passing until then: the peak without all such gradients is `whole - passing`. Elsewhere than on a GPU, what an
    operation takes for itself alone does not count.
    """
    for parameter in own.layers.values():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    kept = _storages([*own.module.parameters(), *own.module.buffers(), *own.batch])
    gradients = sum(one.numel() * one.element_size() for one in own.layers.values())
    made = MadeTensors()
    hooks = [one.register_hook(made.passes) for one in own.layers.values()]  # type: ignore[no-untyped-call] # torch
    if own.batch[0].is_cuda:
        torch.cuda.reset_peak_memory_stats()
    with made:
        own.backward(own.loss())
    for hook in hooks:
        hook.remove()
    if own.batch[0].is_cuda:
        whole = int(torch.cuda.max_memory_allocated())
    else:
        whole = sum(storage.nbytes() for storage in kept.values()) + gradients + made.peak_bytes()
    return Peak(whole, made.peak_bytes() - made.peak_bytes(passing=False), frozen_bytes(own.module))


def frozen_bytes(module: torch.nn.Module) -> int:
    """Bytes of parameters that get no gradient, and of buffers."""
    learned = _storages([one for one in module.parameters() if one.requires_grad])
    every = _storages([*module.parameters(), *module.buffers()])
    return sum(storage.nbytes() for address, storage in every.items() if address not in learned)


def dense(values: object) -> Iterator[torch.Tensor]:
    """The tensors among an operation's arguments or results that have memory of their own; a sparse one has none."""
    for one in tree_iter(values):
        if isinstance(one, torch.Tensor) and one.layout is torch.strided:
            yield one


class MadeTensors(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch
    """Notes when the tensors that operations make come and go."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch
        self._changes: list[tuple[int, int]] = []  # of each storage, by its number, the bytes that come or go
        self._there: dict[int, int] = {}  # the number of the storage that was last made at an address
        self._passing: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operation, and notes what it made."""
        made = func(*args, **(kwargs or {}))
        there, after = _storages((args, kwargs)), _storages(made)
        for address in after.keys() - there.keys():
            self._comes(address, after[address])
        return made

    def passes(self, gradient: torch.Tensor) -> None:
        """A hook of a parameter: its new gradient is not an activation."""
        self._passing.update(self._there[address] for address in _storages(gradient) if address in self._there)

    def peak_bytes(self, *, passing: bool = True) -> int:
        """The most bytes at one moment. passing: whether new gradients of parameters count."""
        changes = (size for number, size in self._changes if passing or number not in self._passing)
        return max(accumulate(changes, initial=0))

    def _comes(self, address: int, storage: torch.UntypedStorage) -> None:
        number = self._there[address] = len(self._changes)
        self._changes.append((number, storage.nbytes()))
        weakref.finalize(storage, self._changes.append, (number, -storage.nbytes()))


def _storages(values: object) -> dict[int, torch.UntypedStorage]:
    """The memory of tensors, each once, by its address."""
    storages = (one.untyped_storage() for one in dense(values))
    return {storage.data_ptr(): storage for storage in storages}
