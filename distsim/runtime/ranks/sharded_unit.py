"""What a worker of sharded training keeps of a unit: parameters in one vector, and gradients in another.

It has a part of its own of each vector:

stage            0      1      2      3
parameters       whole  whole  whole  part, and whole while they are needed
gradients        whole  whole  part, and whole while they are made and summed (2 and 3)

A vector that is freed keeps its views: its memory has 0 bytes until it is needed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from distsim.workload import FLOAT_BYTES


class ShardedVector:
    """The parameters of a unit, or its gradients: one vector, of which this worker has a part.

    freed: whether only the part is kept while nobody needs the whole.
    """

    def __init__(self, whole: torch.Tensor, own: slice, *, freed: bool) -> None:
        self.whole, self._own, self._freed = whole, own, freed
        self.part = whole[own].clone() if freed else whole[own]

    @property
    def held_bytes(self) -> int:
        """Bytes of the memory that it has now."""
        whole = self.whole.untyped_storage().nbytes()
        return whole + self.part.untyped_storage().nbytes() if self._freed else whole

    @property
    def is_whole(self) -> bool:
        """Whether the whole vector has memory."""
        return self.whole.untyped_storage().nbytes() > 0 or not self.whole.numel()

    def spread(self) -> None:
        """Gives the whole vector memory, and writes the part to its place."""
        if self._freed:
            self.grow()
            self.whole[self._own] = self.part

    def grow(self) -> None:
        """Gives the whole vector memory."""
        if not self.is_whole:
            self.whole.untyped_storage().resize_(self.whole.numel() * FLOAT_BYTES)

    def collect(self) -> None:
        """Keeps the worker's part of the whole vector."""
        if self._freed:
            self.part.copy_(self.whole[self._own])

    def free(self) -> None:
        """Takes the whole vector's memory away, where only the part is kept."""
        if self._freed:
            self.whole.untyped_storage().resize_(0)


class Unit:
    """Neighbouring layers of the model: their parameters and their gradients."""

    def __init__(self, layers: Sequence[nn.Parameter], stage: int, own: Callable[[int], slice]) -> None:
        values = torch.cat([one.detach().flatten() for one in layers])
        self.layers = layers
        self.parameters = ShardedVector(values, own(len(values)), freed=stage == 3)
        self.gradients = ShardedVector(torch.zeros_like(values), own(len(values)), freed=stage >= 2)
        place = 0
        for one in layers:
            where = slice(place, place + one.numel())
            place = where.stop
            one.data = values[where].view_as(one)
            one.grad = self.gradients.whole[where].view_as(one)
