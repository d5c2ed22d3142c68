"""One rank runs its part of a schedule, as point-to-point messages that leave when their gates open.

RoundsRunner    gate "process": the messages of a round begin when this rank's earlier rounds are over
DataRunner      gate "data": all receives are posted at the start, and a send leaves when its data have arrived

Sends are rendezvous: bytes move once the target has posted its receive. With "eager" sends, targets post all receives
of a call before they join it, so bytes move as soon as the source sends. The tag of a message is its transfer's number
in the schedule, so messages that overtake each other still find the right receive.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

import torch

from distsim.collectives import Schedule, Transfer
from distsim.communication import Sends
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport import backend
from distsim.runtime.transport.backend import Pending


@dataclass(frozen=True)
class LocalTransfer:
    """A transfer that this rank sends or receives: transfer `number` of the schedule.

    start, stop: the slice of the data that the transfer carries.
    """

    number: int
    round: int
    transfer: Transfer
    start: int
    stop: int

    def of(self, data: torch.Tensor) -> torch.Tensor:
        """The slice of `data` that the transfer carries."""
        return data[self.start : self.stop]

    def overlaps(self, other: LocalTransfer) -> bool:
        """Whether the slices of both transfers have a number in common."""
        return self.start < other.stop and other.start < self.stop


@dataclass(frozen=True)
class ScheduleTask:
    """A rank's task: its part of a schedule, each call on `floats` numbers of type `dtype`.

    first_tag: the tag of the schedule's first transfer; the others follow.
    """

    schedule: Schedule
    rank: int
    floats: int
    sends: Sends
    first_tag: int = 0
    dtype: torch.dtype = torch.float32


class Arrivals:
    """Threads that note when receives end, whatever the rank does meanwhile."""

    def __init__(self) -> None:
        self._here: SimpleQueue[tuple[LocalTransfer, float] | BaseException] = SimpleQueue()
        self._lanes: dict[int, SimpleQueue[tuple[LocalTransfer, Pending]]] = {}

    def expect(self, piece: LocalTransfer, work: Pending, lane: int) -> None:
        """A receive has been posted. The receives of one lane end in the order in which they were posted."""
        if lane not in self._lanes:
            self._lanes[lane] = SimpleQueue()
            threading.Thread(target=self._wait, args=(self._lanes[lane],), name=f"lane {lane}", daemon=True).start()
        self._lanes[lane].put((piece, work))

    def _wait(self, lane: SimpleQueue[tuple[LocalTransfer, Pending]]) -> None:
        try:
            while True:
                piece, work = lane.get()
                work.wait()
                self._here.put((piece, time.monotonic()))
        except BaseException as error:  # noqa: BLE001 - `next` raises it
            self._here.put(error)

    def next(self) -> tuple[LocalTransfer, float]:
        """The next receive that has ended, and when it did; waits until there is one."""
        arrival = self._here.get()
        if isinstance(arrival, BaseException):
            raise arrival
        return arrival


class ScheduleRunner(ABC):
    """Runs one rank's part of a schedule, call after call."""

    def __init__(self, task: ScheduleTask, slot: StatusSlot) -> None:
        schedule, rank = task.schedule, task.rank
        self._slot = slot
        self._name = schedule.name
        self._first_tag = task.first_tag
        self._eager = task.sends == "eager"
        self._posted: dict[int, tuple[Pending, float]] = {}
        self._arrivals = Arrivals()
        self.sends: list[LocalTransfer] = []
        self.receives: list[LocalTransfer] = []
        bounds = schedule.chunk_bounds(task.floats)
        for number, (round_number, transfer) in enumerate(schedule.transfers()):
            start, stop = bounds[transfer.chunk], bounds[transfer.chunk + transfer.chunks]
            for end, own in ((transfer.source, self.sends), (transfer.target, self.receives)):
                if end == rank and start < stop:  # with fewer numbers than chunks, some chunks are empty
                    own.append(LocalTransfer(number, round_number, transfer, start, stop))
        # Zeroed by hand, so that the system maps the memory before the clock starts.
        self._buffers = {
            piece.number: torch.empty(piece.stop - piece.start, dtype=task.dtype).zero_() for piece in self.receives
        }

    def run(self, data: torch.Tensor, call: int, recorder: Recorder, *, more: bool) -> None:
        """Joins call number `call`. Returns when this rank has sent and received all its messages.

        more: whether another call will follow.
        """
        self._call = call
        self._sent, self._received = recorder.table("sends"), recorder.table("receives")
        self._tally = recorder.tally
        self._take_part(data)
        if self._eager and more:
            self.expect()

    def expect(self) -> None:
        """Posts all receives of the next call."""
        for piece in self.receives:
            self._post(piece)

    @abstractmethod
    def _take_part(self, data: torch.Tensor) -> None: ...

    @abstractmethod
    def _await(self, piece: LocalTransfer, work: Pending) -> None:
        """Called when a receive has been posted."""

    def _post(self, piece: LocalTransfer) -> None:
        """Posts a receive, unless it has been posted before."""
        if piece.number in self._posted:
            return
        tag = self._first_tag + piece.number
        work = backend.begin_receive(self._buffers[piece.number], piece.transfer.source, tag)
        self._posted[piece.number] = work, time.monotonic()
        self._await(piece, work)

    def _send(self, piece: LocalTransfer, data: torch.Tensor) -> tuple[LocalTransfer, Pending, float]:
        carried = piece.of(data)
        posted = time.monotonic()
        work = backend.begin_send(carried, piece.transfer.target, self._first_tag + piece.number)
        self._tally.sent(piece.transfer.target, carried.nbytes)
        return piece, work, posted

    def _finish(self, sends: Iterable[tuple[LocalTransfer, Pending, float]]) -> None:
        """Waits until these sends are over. Then `data` may change."""
        for piece, work, posted in sends:
            work.wait()
            self._sent((self._call, piece.number, posted, time.monotonic()))

    def _record(self, piece: LocalTransfer, end: float) -> None:
        """Records a receive that ended at `end`."""
        _, posted = self._posted.pop(piece.number)
        self._received((self._call, piece.number, posted, end))
        self._tally.received(piece.transfer.source, self._buffers[piece.number].nbytes)

    def _apply(self, piece: LocalTransfer, data: torch.Tensor) -> None:
        if piece.transfer.reduce:
            piece.of(data).add_(self._buffers[piece.number])
        else:
            piece.of(data).copy_(self._buffers[piece.number])


class RoundsRunner(ScheduleRunner):
    """Runs a schedule with gate "process"."""

    def __init__(self, task: ScheduleTask, slot: StatusSlot) -> None:
        super().__init__(task, slot)
        self._ends: dict[int, float] = {}  # of receives that ended before `_end_of` asked for them
        numbers = sorted({piece.round for piece in (*self.sends, *self.receives)})
        self._rounds = [
            (
                f"round {number} of {self._name}",
                [piece for piece in self.receives if piece.round == number],
                [piece for piece in self.sends if piece.round == number],
            )
            for number in numbers
        ]

    def _take_part(self, data: torch.Tensor) -> None:
        for name, receives, sends in self._rounds:
            self._slot.doing(name, waiting=True)
            for piece in receives:
                self._post(piece)
            leaving = [self._send(piece, data) for piece in sends]
            for piece in receives:
                self._record(piece, self._end_of(piece))
            # A round sends the data from before the round began, so arrivals are applied only now.
            self._finish(leaving)
            for piece in receives:
                self._apply(piece, data)

    def _await(self, piece: LocalTransfer, work: Pending) -> None:
        if self._eager:  # one source sends in the order of rounds
            self._arrivals.expect(piece, work, lane=piece.transfer.source)

    def _end_of(self, piece: LocalTransfer) -> float:
        """Waits for a receive; returns the moment at which it ended."""
        if not self._eager:
            self._posted[piece.number][0].wait()
            return time.monotonic()
        while piece.number not in self._ends:
            other, end = self._arrivals.next()
            self._ends[other.number] = end
        return self._ends.pop(piece.number)


class DataRunner(ScheduleRunner):
    """Runs a schedule with gate "data"."""

    def _take_part(self, data: torch.Tensor) -> None:
        self.expect()
        here: list[LocalTransfer] = []  # arrived, but not yet applied to `data`
        missing = list(self.receives)  # not yet applied to `data`, whether arrived or not
        waiting = list(self.sends)
        leaving: list[tuple[LocalTransfer, Pending, float]] = []
        while True:
            # A round sends what was there when the round began.
            for piece in [piece for piece in waiting if not _earlier(missing, piece)]:
                waiting.remove(piece)
                leaving.append(self._send(piece, data))
            for piece in [piece for piece in here if self._may_enter(piece, missing, waiting)]:
                self._finish([sent for sent in leaving if sent[0].overlaps(piece)])
                leaving = [sent for sent in leaving if not sent[0].overlaps(piece)]
                self._apply(piece, data)
                here.remove(piece)
                missing.remove(piece)
                break
            else:
                if not missing:
                    break
                here.append(self._next(missing))
        self._finish(leaving)

    def _await(self, piece: LocalTransfer, work: Pending) -> None:
        self._arrivals.expect(piece, work, lane=piece.number)  # transfers of one source may arrive in any order

    @staticmethod
    def _may_enter(piece: LocalTransfer, missing: Sequence[LocalTransfer], waiting: Sequence[LocalTransfer]) -> bool:
        """Whether no earlier receive into the same numbers, and no earlier send from them, is still to come."""
        before = any(other.number < piece.number and other.overlaps(piece) for other in missing)
        return not before and not any(send.round <= piece.round and send.overlaps(piece) for send in waiting)

    def _next(self, missing: Sequence[LocalTransfer]) -> LocalTransfer:
        sources = sorted({piece.transfer.source for piece in missing})
        self._slot.doing(f"{self._name}: recv from ranks {sources}", waiting=True)
        piece, end = self._arrivals.next()
        self._record(piece, end)
        return piece


def _earlier(missing: Sequence[LocalTransfer], send: LocalTransfer) -> bool:
    """Whether a receive of an earlier round into the numbers of `send` is still to come."""
    return any(piece.round < send.round and piece.overlaps(send) for piece in missing)


def runner_of(task: ScheduleTask, slot: StatusSlot) -> ScheduleRunner:
    """The runner for the gate of the task's schedule."""
    return RoundsRunner(task, slot) if task.schedule.gate == "process" else DataRunner(task, slot)
