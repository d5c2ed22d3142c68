"""A collective is data: rounds of transfers. The same object is checked, counted, costed, simulated, drawn and run.

A gradient is cut into `chunks` equal chunks. In a round every transfer reads what its source held when the round
began; at the target a chunk is either added (`reduce`) or replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from distsim.errors import InputError

Gate = Literal["process", "data"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """One chunk from one rank to another; `reduce` adds it to the target's chunk, else it takes that chunk's place."""

    source: int
    target: int
    chunk: int
    reduce: bool


@dataclass(frozen=True)
class Schedule:
    """An all-reduce as rounds of transfers.

    name: of the algorithm. workers: ranks 0 to workers - 1, which hold a gradient and want the sum.
    servers: further ranks, which hold nothing. chunks: how many equal pieces the gradient is cut into.
    gate: when a transfer may start. "process": when its source has finished its transfers of earlier rounds;
    "data": when what it carries has arrived at its source.
    """

    name: str
    workers: int
    chunks: int
    rounds: tuple[tuple[Transfer, ...], ...]
    servers: int = 0
    gate: Gate = "process"

    @property
    def ranks(self) -> int:
        """Workers and servers."""
        return self.workers + self.servers

    def transfers(self) -> Iterator[tuple[int, Transfer]]:
        """(round, transfer) in order."""
        for number, transfers in enumerate(self.rounds):
            for transfer in transfers:
                yield number, transfer

    @cached_property
    def sent_chunks(self) -> NDArray[np.int64]:
        """Chunks that each rank sends, shape (ranks,)."""
        return np.bincount([t.source for _, t in self.transfers()], minlength=self.ranks)

    @cached_property
    def received_chunks(self) -> NDArray[np.int64]:
        """Chunks that each rank receives, shape (ranks,)."""
        return np.bincount([t.target for _, t in self.transfers()], minlength=self.ranks)

    def bytes_per_link(self, num_bytes: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bytes on each rank's up-link and down-link, each of shape (ranks,), for a gradient of `num_bytes`.

        >>> from distsim.collectives import ring
        >>> ring(4).bytes_per_link(4e6)[0]
        array([6000000., 6000000., 6000000., 6000000.])
        """
        return self.sent_chunks * num_bytes / self.chunks, self.received_chunks * num_bytes / self.chunks

    def check(self) -> None:
        """Raises InputError unless every worker ends with every chunk of every worker, added exactly once.

        The message names the first chunk, rank and round that go wrong.
        """
        held = np.zeros((self.ranks, self.chunks, self.workers), dtype=np.int32)
        for worker in range(self.workers):
            held[worker, :, worker] = 1
        for number, transfers in enumerate(self.rounds):
            before = held.copy() if _reads_what_it_writes(transfers) else held
            arriving = [(transfer, self._read(before, number, transfer)) for transfer in transfers]
            for transfer, piece in arriving:
                self._write(held, number, transfer, piece)
        self._check_end(held)

    def _read(self, held: NDArray[np.int32], number: int, transfer: Transfer) -> NDArray[np.int32]:
        for what, value, limit in (
            ("source", transfer.source, self.ranks),
            ("target", transfer.target, self.ranks),
            ("chunk", transfer.chunk, self.chunks),
        ):
            if not 0 <= value < limit:
                raise InputError.of(
                    f"schedule {self.name!r}, round {number}: {what}",
                    value,
                    f"must be 0 to {limit - 1}",
                    f"correct {transfer}",
                )
        if transfer.source == transfer.target:
            raise InputError.of(
                f"schedule {self.name!r}, round {number}: target",
                transfer.target,
                "must be another rank than the source",
                f"correct {transfer}",
            )
        piece: NDArray[np.int32] = held[transfer.source, transfer.chunk].copy()
        if not piece.any():
            raise InputError.of(
                f"schedule {self.name!r}, round {number}: chunk", transfer.chunk,
                f"is sent by rank {transfer.source}, which holds nothing of it yet",
                "send it in a later round, or from another rank",
            )  # fmt: skip
        return piece

    def _write(self, held: NDArray[np.int32], number: int, transfer: Transfer, piece: NDArray[np.int32]) -> None:
        if not transfer.reduce:
            held[transfer.target, transfer.chunk] = piece
            return
        held[transfer.target, transfer.chunk] += piece
        twice = np.flatnonzero(held[transfer.target, transfer.chunk] > 1)
        if len(twice):
            raise InputError.of(
                f"schedule {self.name!r}, round {number}: chunk", transfer.chunk,
                f"of worker {twice[0]} is added twice at rank {transfer.target}",
                f"leave out one of its ways there, or set reduce=False in {transfer}",
            )  # fmt: skip

    def _check_end(self, held: NDArray[np.int32]) -> None:
        missing = np.argwhere(held[: self.workers] != 1)
        if len(missing):
            rank, chunk, worker = (int(x) for x in missing[0])
            raise InputError.of(
                f"schedule {self.name!r}, after round {len(self.rounds) - 1}: chunk", chunk,
                f"at rank {rank} lacks the part of worker {worker}", "add the transfers that bring it there",
            )  # fmt: skip


def _reads_what_it_writes(transfers: tuple[Transfer, ...]) -> bool:
    written = {(transfer.target, transfer.chunk) for transfer in transfers}
    return any((transfer.source, transfer.chunk) in written for transfer in transfers)
