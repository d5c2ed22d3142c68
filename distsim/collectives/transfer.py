"""A transfer of chunks from one rank to another, and the round of a ring, which is kept without its transfers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from distsim.arrays import Indices


@dataclass(frozen=True, slots=True)
class Transfer:
    """Chunks from one rank to another. The target adds them to its own (`reduce`), or replaces its own by them.

    chunk: the first chunk. chunks: how many chunks travel in this one message.
    """

    source: int
    target: int
    chunk: int
    reduce: bool
    chunks: int = 1

    @property
    def carried(self) -> range:
        """The numbers of its chunks."""
        return range(self.chunk, self.chunk + self.chunks)


@dataclass(frozen=True, slots=True, eq=False)
class RingRound(Sequence[Transfer]):
    """A round in which all ranks stand in rings, and each sends one chunk to the next. It makes transfers on demand.

    size, stride: member i of a ring sends to the member `stride` ranks on, which is member i + 1 modulo `size`; by
    default all ranks are one ring. ahead: member i sends piece i + `ahead`, modulo `size`. share: how many chunks a
    piece has. apart: each ring works on chunks of its own, ring p on the part after that of ring p - 1.

    >>> list(RingRound(3, ahead=1, reduce=False))[2]
    Transfer(source=2, target=0, chunk=0, reduce=False, chunks=1)
    >>> [(one.source, one.target) for one in RingRound(4, ahead=0, reduce=True, size=2, stride=2)]
    [(0, 2), (1, 3), (2, 0), (3, 1)]
    """

    ranks: int
    ahead: int
    reduce: bool
    size: int = 0
    stride: int = 1
    share: int = 1
    apart: bool = False

    @property
    def rings(self) -> tuple[int, int]:
        """Members of each ring, and ranks from one to the next."""
        return self.size or self.ranks, self.stride

    def columns(self) -> tuple[Indices, Indices, Indices]:
        """Source, target and first chunk of each transfer, each of shape (ranks,)."""
        size, stride = self.rings
        rank = np.arange(self.ranks, dtype=np.int32)
        member = rank // stride % size
        target = np.where(member + 1 < size, rank + stride, rank - (size - 1) * stride).astype(np.int32)
        chunk = (member + self.ahead) % size * self.share
        if self.apart:
            chunk = chunk + (rank % stride + 1) % stride * size * self.share
        return rank, target, chunk.astype(np.int32)

    def __eq__(self, other: object) -> bool:
        """Whether `other` holds the same transfers, also as a tuple."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __len__(self) -> int:
        return self.ranks

    def __iter__(self) -> Iterator[Transfer]:
        for source, target, chunk in zip(*(column.tolist() for column in self.columns()), strict=True):
            yield Transfer(source, target, chunk, self.reduce, self.share)

    @overload
    def __getitem__(self, index: int) -> Transfer: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Transfer, ...]: ...

    def __getitem__(self, index: int | slice) -> Transfer | tuple[Transfer, ...]:
        return tuple(self)[index]
