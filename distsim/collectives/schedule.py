"""A collective is data: rounds of transfers. The same object is checked, counted, costed, simulated, drawn and run.

A gradient is cut into `chunks` equal chunks. In a round every transfer reads the data that its source had at
the start of the round; the target adds the chunk to its own (`reduce`), or replaces its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Indices
from distsim.collectives.transfer import RingRound, Transfer
from distsim.errors import InputError, problem
from distsim.groups import Groups

START = -1  # the number of the round before the first
Gate = Literal["process", "data"]
PartCounts = NDArray[np.int32]


class ScheduleError(InputError):
    """A wrong schedule, with the round (counted from 0, or `START`), the rank and the chunk of the fault.

    rank, chunk: None if the schedule names a rank or chunk that does not exist.
    """

    def __init__(self, message: str, number: int = 0, rank: int | None = None, chunk: int | None = None) -> None:
        super().__init__(message)
        self.round, self.rank, self.chunk = number, rank, chunk


@dataclass(frozen=True)
class Schedule:
    """A collective as rounds of transfers; an all-reduce unless `start` and `end` say otherwise.

    name: of the algorithm. workers: ranks 0 to workers - 1. servers: further ranks, which hold nothing at the start.
    chunks: how many equal pieces the data is cut into. gate: when a transfer may start. "process": when its source
    has finished all its transfers of earlier rounds; "data": when its data has arrived at its source.
    start: the (rank, chunk) pairs held at the start; if several ranks hold a chunk, its parts are added.
    end: the (rank, chunk) pairs wanted complete at the end. None: every worker holds, and wants, every chunk.
    groups: workers that call it among themselves; complete is then what all of the group have. None: all workers.
    """

    name: str
    workers: int
    chunks: int
    rounds: tuple[Sequence[Transfer], ...]
    servers: int = 0
    gate: Gate = "process"
    start: frozenset[tuple[int, int]] | None = None
    end: frozenset[tuple[int, int]] | None = None
    groups: Groups | None = None

    @property
    def ranks(self) -> int:
        """Workers and servers."""
        return self.workers + self.servers

    @property
    def in_rings(self) -> bool:
        """Whether in every round all ranks stand in rings, and each goes on when its round is over."""
        return (
            self.gate == "process"
            and not self.servers
            and all(isinstance(found, RingRound) and found.ranks == self.workers for found in self.rounds)
        )

    @property
    def is_sequential(self) -> bool:
        """Whether a rank's transfers follow each other: gate "process", at most one send and one receive in a round.

        No rank sends twice at once. No rank receives twice at once, except with eager sends, where a transfer does not
        wait for its target.

        >>> from distsim.collectives import halving_doubling, parameter_server
        >>> halving_doubling(4).is_sequential, parameter_server(4).is_sequential
        (True, False)
        """
        return self.gate == "process" and all(
            len({one.source for one in members}) == len({one.target for one in members}) == len(members)
            for members in self.rounds
        )

    @cached_property
    def pairs(self) -> tuple[Indices, Indices]:
        """The source and the target of each pair between which anything travels."""
        rings = {found.rings: found for found in self.rounds if isinstance(found, RingRound)}
        others = [members for members in self.rounds if not isinstance(members, RingRound)]
        single = sorted({(one.source, one.target) for members in others for one in members})
        found = [*(members.columns()[:2] for members in rings.values()), np.array(single, np.int32).reshape(-1, 2).T]
        source, target = (np.concatenate(ends) for ends in zip(*found, strict=True))
        return source, target

    def moves_like(self, other: Schedule) -> bool:
        """Whether both have the same transfers with the same waits: only name, start and end may differ."""
        own, its = ((one.workers, one.servers, one.chunks, one.gate, len(one.rounds)) for one in (self, other))
        return own == its and all(map(_equal_rounds, self.rounds, other.rounds))

    def transfers(self) -> Iterator[tuple[int, Transfer]]:
        """(round, transfer) in order."""
        for number, transfers in enumerate(self.rounds):
            for transfer in transfers:
                yield number, transfer

    @cached_property
    def sent_chunks(self) -> NDArray[np.int64]:
        """Chunks that each rank sends, shape (ranks,)."""
        sent = np.zeros(self.ranks, dtype=np.int64)
        for _, transfer in self.transfers():
            sent[transfer.source] += transfer.chunks
        return sent

    @cached_property
    def received_chunks(self) -> NDArray[np.int64]:
        """Chunks that each rank receives, shape (ranks,)."""
        received = np.zeros(self.ranks, dtype=np.int64)
        for _, transfer in self.transfers():
            received[transfer.target] += transfer.chunks
        return received

    def bytes_per_link(self, num_bytes: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bytes on each rank's up-link and down-link, each of shape (ranks,), for a gradient of `num_bytes`.

        >>> from distsim.collectives import ring
        >>> ring(4).bytes_per_link(4e6)[0]
        array([6000000., 6000000., 6000000., 6000000.])
        """
        return self.sent_chunks * num_bytes / self.chunks, self.received_chunks * num_bytes / self.chunks

    def chunk_bounds(self, numbers: int) -> list[int]:
        """The first number of each chunk in a gradient of `numbers` numbers, and the end of the last chunk.

        >>> from distsim.collectives import ring
        >>> ring(4).chunk_bounds(10)
        [0, 2, 5, 7, 10]
        """
        return [chunk * numbers // self.chunks for chunk in range(self.chunks + 1)]

    def check(self) -> None:
        """Raises ScheduleError unless every rank ends with the chunks it wants, each worker's part added exactly once.

        The message and the error's fields name the first wrong chunk, rank and round.
        """
        for _ in self.states():
            pass

    def states(self) -> Iterator[PartCounts]:
        """How often each worker's part is in each rank's chunk, at the start and after each round.

        Shape (ranks, chunks, workers); one array, which later rounds change. Raises ScheduleError as `check` does; the
        array then has the state at the fault.

        >>> from distsim.collectives import ring
        >>> [int(held[0, 0].sum()) for held in ring(3).states()]    # parts summed in chunk 0 at rank 0
        [1, 1, 1, 3, 3]
        """
        self._check_pairs("start", self.start, self.workers)
        self._check_pairs("end", self.end, self.ranks)
        held = np.zeros((self.ranks, self.chunks, self.workers), dtype=np.int32)  # parts of worker w in (rank, chunk)
        for rank, chunk in self._everything if self.start is None else self.start:
            held[rank, chunk, rank] = 1
        complete = held.sum(axis=0)
        yield held
        for number, transfers in enumerate(self.rounds):
            if not self._written_at_once(held, transfers):
                self._write_one_by_one(held, number, transfers)
            yield held
        self._check_end(held, complete)

    def _written_at_once(self, held: PartCounts, transfers: Sequence[Transfer]) -> bool:
        """Writes a correct round that writes each (rank, chunk) once; any other round leaves `held` as it is.

        Arrays are a hundred times faster than single transfers; single transfers find and name the first fault.
        """
        pieces = [(one.source, one.target, chunk, one.reduce) for one in transfers for chunk in one.carried]
        if not pieces:
            return True
        source, target, chunk, reduce = np.array(pieces).T
        known = source.min() >= 0 and target.min() >= 0 and chunk.min() >= 0 and chunk.max() < self.chunks
        if not known or max(source.max(), target.max()) >= self.ranks or (source == target).any():
            return False
        if len(np.unique(target * self.chunks + chunk)) < len(pieces):
            return False
        arriving = held[source, chunk]
        written = arriving + np.where(reduce, 1, 0)[:, None] * held[target, chunk]
        if not arriving.any(axis=1).all() or (written[reduce == 1] > 1).any():
            return False
        held[target, chunk] = written
        return True

    def _write_one_by_one(self, held: PartCounts, number: int, transfers: Sequence[Transfer]) -> None:
        for transfer in transfers:
            self._check_names(number, transfer)
        before = held.copy() if _reads_what_it_writes(transfers) else held
        arriving = [(transfer, before[transfer.source, _slice(transfer)].copy()) for transfer in transfers]
        for transfer, pieces in arriving:
            self._write(held, number, transfer, pieces)

    @cached_property
    def wanted(self) -> NDArray[np.bool_]:
        """Which (rank, chunk) pairs are wanted complete at the end, shape (ranks, chunks).

        >>> from distsim.collectives import reduce
        >>> reduce(3).wanted.any(axis=1).tolist()
        [True, False, False]
        """
        wanted = np.zeros((self.ranks, self.chunks), dtype=np.bool_)
        if self.end is None:
            wanted[: self.workers] = True
        for rank, chunk in self.end or ():
            wanted[rank, chunk] = True
        return wanted

    @property
    def _everything(self) -> frozenset[tuple[int, int]]:
        return frozenset((rank, chunk) for rank in range(self.workers) for chunk in range(self.chunks))

    def _check_pairs(self, which: str, pairs: frozenset[tuple[int, int]] | None, ranks: int) -> None:
        """ranks: the number of ranks."""
        for pair in sorted(pairs or ()):
            for what, value, limit in zip(("rank", "chunk"), pair, (ranks, self.chunks), strict=True):
                if not 0 <= value < limit:
                    where = f"schedule {self.name!r}, at the {which}: {what}"
                    message = problem(where, value, f"must be 0 to {limit - 1}", f"correct {pair} in {which}")
                    raise ScheduleError(message, START)

    def _check_names(self, number: int, transfer: Transfer) -> None:
        for what, value, limit in (
            ("source", transfer.source, self.ranks),
            ("target", transfer.target, self.ranks),
            ("chunk", transfer.chunk, self.chunks),
            ("chunk", transfer.chunk + transfer.chunks - 1, self.chunks),
        ):
            if not 0 <= value < limit:
                raise self._wrong(number, what, value, f"must be 0 to {limit - 1}", f"correct {transfer}")
        if transfer.source == transfer.target:
            rule = "must be another rank than the source"
            at = (transfer.source, transfer.chunk)
            raise self._wrong(number, "target", transfer.target, rule, f"correct {transfer}", at)

    def _write(self, held: PartCounts, number: int, transfer: Transfer, pieces: PartCounts) -> None:
        empty = np.flatnonzero(~pieces.any(axis=1))
        if len(empty):
            rule = f"is sent by rank {transfer.source}, which holds nothing of it yet"
            cure = "send it in a later round, or from another rank"
            chunk = transfer.chunk + int(empty[0])
            raise self._wrong(number, "chunk", chunk, rule, cure, (transfer.source, chunk))
        if not transfer.reduce:
            held[transfer.target, _slice(transfer)] = pieces
            return
        held[transfer.target, _slice(transfer)] += pieces
        twice = np.argwhere(held[transfer.target, _slice(transfer)] > 1)
        if len(twice):
            chunk, worker = transfer.chunk + int(twice[0][0]), twice[0][1]
            rule = f"of worker {worker} is added twice at rank {transfer.target}"
            cure = f"leave out one of its transfers, or set reduce=False in {transfer}"
            raise self._wrong(number, "chunk", chunk, rule, cure, (transfer.target, chunk))

    def _check_end(self, held: PartCounts, complete: NDArray[np.int32]) -> None:
        for rank, chunk in np.argwhere(self.wanted).tolist():
            lacking = np.flatnonzero(held[rank, chunk] != self._of_group(rank, complete[chunk]))
            if len(lacking):
                last = len(self.rounds) - 1
                when = "at the start" if last == START else f"after round {last}"
                message = problem(
                    f"schedule {self.name!r}, {when}: chunk",
                    chunk,
                    f"at rank {rank} lacks the part of worker {lacking[0]}",
                    "add the transfers that bring it there",
                )
                raise ScheduleError(message, last, rank, chunk)

    def _of_group(self, rank: int, parts: NDArray[np.int32]) -> NDArray[np.int32]:
        """The `parts`, by worker, without those of other groups than the rank's."""
        if self.groups is None:
            return parts
        own = np.zeros_like(parts)
        members = self.groups.members(rank)
        own[members] = parts[members]
        return own

    def _wrong(
        self, number: int, what: str, value: int, rule: str, cure: str, at: tuple[int | None, int | None] = (None, None)
    ) -> ScheduleError:
        """at: the rank and the chunk of the fault."""
        return ScheduleError(problem(f"schedule {self.name!r}, round {number}: {what}", value, rule, cure), number, *at)


def _equal_rounds(one: Sequence[Transfer], other: Sequence[Transfer]) -> bool:
    return len(one) == len(other) and all(map(Transfer.__eq__, one, other))


def _slice(transfer: Transfer) -> slice:
    return slice(transfer.chunk, transfer.chunk + transfer.chunks)


def _reads_what_it_writes(transfers: Sequence[Transfer]) -> bool:
    written = {(transfer.target, chunk) for transfer in transfers for chunk in transfer.carried}
    return any((transfer.source, chunk) in written for transfer in transfers for chunk in transfer.carried)
