"""What an animation shows of a schedule, round by round, with no word of plotly: who holds how much of which chunk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from distsim.collectives import Schedule, ScheduleError, Transfer
from distsim.collectives.schedule import START

Counts = NDArray[np.int32]


@dataclass(frozen=True)
class Round:
    """One round and what is held after it.

    number: from 0; `START` for what is held before. counts: workers summed in each (rank, chunk), shape (ranks,
    chunks). transfers: of this round, without any that names a rank or chunk that there is not.
    """

    number: int
    counts: Counts
    transfers: tuple[Transfer, ...]

    @property
    def title(self) -> str:
        """How the round is called."""
        return "start" if self.number == START else f"round {self.number}"

    @property
    def arrived(self) -> list[tuple[int, int]]:
        """The (rank, chunk) pairs that were written in this round."""
        return sorted({(transfer.target, chunk) for transfer in self.transfers for chunk in transfer.carried})


@dataclass(frozen=True)
class Rounds:
    """A schedule played through. fault: where it went wrong; nothing is known of what would come later.

    parts: in how many workers' parts each chunk begins, shape (chunks,); it is complete when they are summed.
    """

    schedule: Schedule
    rounds: list[Round]
    parts: Counts
    fault: ScheduleError | None

    def complete(self, found: Round) -> int:
        """How many of the (rank, chunk) pairs that are wanted in the end are complete after this round."""
        return int((self.wanted & (found.counts == self.parts)).sum())

    @cached_property
    def wanted(self) -> NDArray[np.bool_]:
        """Which (rank, chunk) pairs are wanted complete in the end, shape (ranks, chunks)."""
        schedule = self.schedule
        wanted = np.zeros((schedule.ranks, schedule.chunks), dtype=np.bool_)
        if schedule.end is None:
            wanted[: schedule.workers] = True
        for rank, chunk in schedule.end or ():
            wanted[rank, chunk] = True
        return wanted


def play(schedule: Schedule, most: int) -> Rounds:
    """The start, the rounds, and the fault, if there is one; of more than `most` pictures, so many evenly spaced ones.

    The first and the last are always among them. Raises ScheduleError where the start or the end names a rank or chunk
    that there is not.

    >>> from distsim.collectives import ring
    >>> [int(found.counts.max()) for found in play(ring(3), most=9).rounds]
    [1, 2, 3, 3, 3]
    """
    last = len(schedule.rounds) - 1
    numbers = range(START, last + 1)
    kept = set(numbers if len(numbers) <= most else np.linspace(START, last, most).round().astype(int).tolist())
    counts = np.zeros((schedule.ranks, schedule.chunks), dtype=np.int32)
    found: list[Round] = []
    fault: ScheduleError | None = None
    number = START
    held = np.zeros((*counts.shape, schedule.workers), dtype=np.int32)
    try:
        for number, held in enumerate(schedule.states(), start=START):
            transfers = () if number == START else tuple(schedule.rounds[number])
            _recount(counts, held, transfers)
            if number in kept:
                found.append(Round(number, counts.copy(), transfers))
    except ScheduleError as error:
        if not found:
            raise
        fault = error
        if error.round > number:  # the round was begun and not ended
            number += 1
            transfers = _known(schedule, number)
            _recount(counts, held, transfers)
            found.append(Round(number, counts.copy(), transfers))
    return Rounds(schedule, found, found[0].counts.sum(axis=0), fault)


def _known(schedule: Schedule, number: int) -> tuple[Transfer, ...]:
    """The transfers of a round whose ranks and chunks there are."""
    return tuple(
        transfer
        for transfer in schedule.rounds[number]
        if 0 <= transfer.source < schedule.ranks
        and 0 <= transfer.target < schedule.ranks
        and 0 <= transfer.chunk <= transfer.chunk + transfer.chunks <= schedule.chunks
        and transfer.source != transfer.target
    )


def _recount(counts: Counts, held: NDArray[np.int32], transfers: tuple[Transfer, ...]) -> None:
    """Counts again where the transfers wrote; everywhere if there are none."""
    if not transfers:
        counts[:] = held.sum(axis=2)
        return
    target, chunk = np.array([(one.target, piece) for one in transfers for piece in one.carried]).T
    counts[target, chunk] = held[target, chunk].sum(axis=1)
