"""A transfer of chunks from one rank to another, and the round of a ring, which is kept without its transfers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload


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
    """A round in which rank i sends chunk i + `ahead` to rank i + 1, both modulo `ranks`. It makes transfers on demand.

    >>> list(RingRound(3, ahead=1, reduce=False))[2]
    Transfer(source=2, target=0, chunk=0, reduce=False, chunks=1)
    """

    ranks: int
    ahead: int
    reduce: bool

    def __eq__(self, other: object) -> bool:
        """Whether `other` holds the same transfers, also as a tuple."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __len__(self) -> int:
        return self.ranks

    def __iter__(self) -> Iterator[Transfer]:
        for rank in range(self.ranks):
            yield Transfer(rank, (rank + 1) % self.ranks, (rank + self.ahead) % self.ranks, self.reduce)

    @overload
    def __getitem__(self, index: int) -> Transfer: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Transfer, ...]: ...

    def __getitem__(self, index: int | slice) -> Transfer | tuple[Transfer, ...]:
        return tuple(self)[index]
