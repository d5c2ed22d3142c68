"""The program of one step: what a worker computes and what it exchanges, and which of the two waits for the other.

A worker has a queue of computations, and a queue of exchanges with each group that it belongs to. Each does its pieces
in order, one after the other. A piece also waits for pieces of other queues: a forward waits for the gather of its
parameters, and a reduce-scatter waits for the backward that makes its gradients. Both engines play such a program, and
so do real workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from distsim.groups import GroupExchange, Groups

Computed = Literal["apply", "forward", "backward"]
Exchanged = Literal["all_reduce", "reduce_scatter", "all_gather"]


@dataclass(frozen=True)
class Computation:
    """A piece of computing. unit: the layers that it is about, by number; a block, or a bucket.

    share: of the step's drawn time. added_seconds: what a profile adds. after: the exchanges of the step, by number,
    that must be over before.
    """

    kind: Computed
    unit: int
    share: float
    added_seconds: float = 0.0
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Exchange:
    """A collective that all workers join, or each group of them. unit: of `Computation`. num_bytes: of a whole vector.

    after: how many computations of the step must be over before a worker joins. groups: None for all workers together.
    """

    kind: Exchanged
    unit: int
    num_bytes: float
    after: int
    groups: Groups | None = None

    @property
    def called(self) -> GroupExchange:
        """The collective, and who joins it."""
        return GroupExchange(self.kind, self.groups)


@dataclass(frozen=True)
class StepProgram:
    """The queues of one step. A step begins when all queues have done the step before.

    exchanges: of all queues; those with the same groups are one queue. unit: what a unit is called in labels.

    >>> program = StepProgram((Computation("forward", 0, 0.3), Computation("backward", 0, 0.7)),
    ...                       (Exchange("all_reduce", 0, 4e6, after=2),))
    >>> [piece.kind for piece, _ in program.in_order()]
    ['forward', 'backward', 'all_reduce']
    """

    computations: tuple[Computation, ...]
    exchanges: tuple[Exchange, ...]
    unit: str = "layer"

    def label(self, piece: Computation | Exchange) -> str:
        """What a piece is about, such as "layer 3"."""
        return f"{self.unit} {piece.unit}"

    @property
    def forwards(self) -> int:
        """In how many pieces a worker computes forward."""
        return sum(piece.kind == "forward" for piece in self.computations)

    @cached_property
    def queues(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the exchanges of each queue."""
        found: dict[Groups | None, list[int]] = {}
        for number, exchange in enumerate(self.exchanges):
            found.setdefault(exchange.groups, []).append(number)
        return tuple(map(tuple, found.values()))

    def in_order(self) -> Iterator[tuple[Computation | Exchange, int]]:
        """All pieces with their numbers, each after those it waits for. Raises ValueError where none can go on."""
        over: set[int] = set()
        computed, waiting = 0, [deque(queue) for queue in self.queues]
        while computed < len(self.computations) or any(waiting):
            if computed < len(self.computations) and over.issuperset(self.computations[computed].after):
                yield self.computations[computed], computed
                computed += 1
                continue
            ready = [queue for queue in waiting if queue and self.exchanges[queue[0]].after <= computed]
            if not ready:
                first = [queue[0] for queue in waiting if queue]
                raise ValueError(f"computation {computed} and exchanges {first} wait for each other")
            for queue in ready:
                over.add(queue[0])
                yield self.exchanges[queue[0]], queue.popleft()

    @cached_property
    def computed_before_waiting(self) -> tuple[int, ...]:
        """For each exchange, how many computations a worker can do before it has to wait for this exchange.

        >>> gather = tuple(Exchange("all_gather", unit, 1e6, after=0) for unit in (0, 1))
        >>> forward = tuple(Computation("forward", unit, 0.5, after=(unit,)) for unit in (0, 1))
        >>> StepProgram(forward, gather).computed_before_waiting
        (0, 1)
        """
        found = [0] * len(self.exchanges)
        for queue in self.queues:
            before = 0
            for number in queue:
                while before < len(self.computations) and not self._waits(before, queue, number):
                    before += 1
                found[number] = before
        return tuple(found)

    def _waits(self, computation: int, queue: tuple[int, ...], number: int) -> bool:
        """Whether a computation waits for exchange `number` of a queue, or for a later one of it."""
        return any(other >= number for other in self.computations[computation].after if other in queue)
