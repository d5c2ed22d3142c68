"""The rounds of a schedule for its animation: how much of each chunk each rank holds. Computed without plotly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distsim.collectives import Schedule, ScheduleError, Transfer
from distsim.collectives.schedule import START

Counts = NDArray[np.int32]


@dataclass(frozen=True)
class Round:
    """One round, and the chunks of each rank after this round.

    number: from 0; `START` is the state before round 0. counts: how many workers' gradients each chunk of each rank
    sums, shape (ranks, chunks). transfers: of this round, without those that name an unknown rank or chunk.
    """

    number: int
    counts: Counts
    transfers: tuple[Transfer, ...]

    @property
    def title(self) -> str:
        """The name of the round."""
        return "start" if self.number == START else f"round {self.number}"

    @property
    def arrived(self) -> list[tuple[int, int]]:
        """The (rank, chunk) pairs that were written in this round."""
        return sorted({(transfer.target, chunk) for transfer in self.transfers for chunk in transfer.carried})


@dataclass(frozen=True)
class Rounds:
    """A schedule played to its end or to its first fault. fault: the error of a wrong schedule.

    parts: how many workers hold a part of each chunk at the start, shape (chunks,). A chunk is complete when all
    its parts are summed.
    """

    schedule: Schedule
    rounds: list[Round]
    parts: Counts
    fault: ScheduleError | None

    def complete(self, found: Round) -> int:
        """How many of the wanted (rank, chunk) pairs are complete after this round."""
        return int((self.schedule.wanted & (found.counts == self.parts)).sum())


def play(schedule: Schedule, most: int) -> Rounds:
    """Plays a schedule from its start to its end or its fault. Keeps at most `most` states, evenly spaced.

    The first and the last state are always kept. Raises ScheduleError where the start or the end names an unknown
    rank or chunk.

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
        if error.round > number:  # the fault is in the round after `number`
            number += 1
            transfers = _known(schedule, number)
            _recount(counts, held, transfers)
            found.append(Round(number, counts.copy(), transfers))
    return Rounds(schedule, found, found[0].counts.sum(axis=0), fault)


def _known(schedule: Schedule, number: int) -> tuple[Transfer, ...]:
    """The transfers of a round that name known ranks and chunks."""
    return tuple(
        transfer
        for transfer in schedule.rounds[number]
        if 0 <= transfer.source < schedule.ranks
        and 0 <= transfer.target < schedule.ranks
        and 0 <= transfer.chunk <= transfer.chunk + transfer.chunks <= schedule.chunks
        and transfer.source != transfer.target
    )


def _recount(counts: Counts, held: NDArray[np.int32], transfers: tuple[Transfer, ...]) -> None:
    """Updates the counts of the chunks that transfers wrote, or all counts if there are no transfers."""
    if not transfers:
        counts[:] = held.sum(axis=2)
        return
    target, chunk = np.array([(one.target, piece) for one in transfers for piece in one.carried]).T
    counts[target, chunk] = held[target, chunk].sum(axis=1)
