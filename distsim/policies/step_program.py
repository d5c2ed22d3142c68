"""The program of one step: what a worker computes and what it exchanges, and which of the two waits for the other.

A worker has two queues. One computes, and the other exchanges. Each does its pieces in order, one after the other. A
piece also waits until the other queue has done a given number of the step's pieces: a forward waits for the gather of
its parameters, and a reduce-scatter waits for the backward that makes its gradients. Both engines play such a program,
and so do real workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Computed = Literal["apply", "forward", "backward"]
Exchanged = Literal["all_reduce", "reduce_scatter", "all_gather"]


@dataclass(frozen=True)
class Computation:
    """A piece of computing. unit: the layers that it is about, by number; a block, or a bucket.

    share: of the step's drawn time. added_seconds: what a profile adds. after: how many exchanges of the step must be
    over before.
    """

    kind: Computed
    unit: int
    share: float
    added_seconds: float = 0.0
    after: int = 0


@dataclass(frozen=True)
class Exchange:
    """A collective that all workers join. unit: of `Computation`. num_bytes: of the whole vector.

    after: how many computations of the step must be over before a worker joins.
    """

    kind: Exchanged
    unit: int
    num_bytes: float
    after: int


@dataclass(frozen=True)
class StepProgram:
    """The two queues of one step. A step begins when both queues have done the step before.

    unit: what a unit is called in labels.

    >>> program = StepProgram((Computation("forward", 0, 0.3), Computation("backward", 0, 0.7)),
    ...                       (Exchange("all_reduce", 0, 4e6, after=2),))
    >>> [piece.kind for piece in program.in_order()]
    ['forward', 'backward', 'all_reduce']
    """

    computations: tuple[Computation, ...]
    exchanges: tuple[Exchange, ...]
    unit: str = "layer"

    def label(self, piece: Computation | Exchange) -> str:
        """What a piece is about, such as "layer 3"."""
        return f"{self.unit} {piece.unit}"

    def in_order(self) -> Iterator[Computation | Exchange]:
        """All pieces, each after those that it waits for. Raises ValueError where two wait for each other."""
        computed = exchanged = 0
        while computed < len(self.computations) or exchanged < len(self.exchanges):
            if computed < len(self.computations) and self.computations[computed].after <= exchanged:
                yield self.computations[computed]
                computed += 1
            elif exchanged < len(self.exchanges) and self.exchanges[exchanged].after <= computed:
                yield self.exchanges[exchanged]
                exchanged += 1
            else:
                raise ValueError(f"computation {computed} and exchange {exchanged} wait for each other")

    @cached_property
    def computed_before_waiting(self) -> tuple[int, ...]:
        """For each exchange, how many computations a worker can do before it has to wait for this exchange.

        >>> gather = tuple(Exchange("all_gather", unit, 1e6, after=0) for unit in (0, 1))
        >>> forward = tuple(Computation("forward", unit, 0.5, after=unit + 1) for unit in (0, 1))
        >>> StepProgram(forward, gather).computed_before_waiting
        (0, 1)
        """
        found, before = [], 0
        for number in range(len(self.exchanges)):
            while before < len(self.computations) and self.computations[before].after <= number:
                before += 1
            found.append(before)
        return tuple(found)
