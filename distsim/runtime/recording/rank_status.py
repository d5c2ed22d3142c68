"""What each rank is doing right now: one slot per rank in a mapped file, which outlives the rank.

Ranks write a slot at every phase (some microseconds, no system call); the launching process reads it for the progress
of the run, and when a rank hangs or dies. A slot read in the middle of a write may mix two phases; that
is harmless, because slots are read for messages about ranks that stand still.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

FILE = "status"
SLOT_BYTES = 512
# pid, state, steps done, waiting on others?, since (monotonic seconds), line, file, activity
LAYOUT = struct.Struct("<qqqqdq64s256s")
PHASE = struct.Struct("<qdq64s256s")
PHASE_OFFSET = 3 * 8
STATE_OFFSET = 8
DONE_OFFSET = 2 * 8


class State(IntEnum):
    """How far a rank has come."""

    NOT_STARTED = 0
    RUNNING = 1
    FINISHED = 2
    ELSEWHERE = 3  # on another machine, which watches over it


@dataclass(frozen=True)
class Status:
    """One slot as read. since_seconds: on the monotonic clock; place: "file:line" of the phase."""

    rank: int
    pid: int
    state: State
    steps_done: int
    waiting: bool
    since_seconds: float
    place: str
    activity: str

    @property
    def over(self) -> bool:
        """Whether nothing more is to come of it here."""
        return self.state in (State.FINISHED, State.ELSEWHERE)


class StatusSlot:
    """A rank's own slot, for writing."""

    def __init__(self, folder: Path, rank: int) -> None:
        with (folder / FILE).open("r+b") as stream:
            self._map = mmap.mmap(stream.fileno(), 0)
        self._offset = rank * SLOT_BYTES

    def begin(self) -> None:
        """This process is the rank, and from now on a stack dump may be asked of it."""
        LAYOUT.pack_into(
            self._map, self._offset, os.getpid(), State.RUNNING, 0, False, time.monotonic(), 0, b"", b"its start"
        )

    def doing(self, activity: str, *, waiting: bool = False, callers: int = 1) -> None:
        """The rank now does `activity`, at the line of the caller (or of a caller further up).

        waiting: whether it can only go on when another rank does something.
        """
        frame = sys._getframe(callers)
        name = frame.f_code.co_filename.rpartition(os.sep)[2]
        PHASE.pack_into(
            self._map, self._offset + PHASE_OFFSET,
            waiting, time.monotonic(), frame.f_lineno, name.encode()[:64], activity.encode()[:256],
        )  # fmt: skip

    def done(self, steps: int) -> None:
        """So many steps are done, all scenarios together."""
        struct.pack_into("<q", self._map, self._offset + DONE_OFFSET, steps)

    def finished(self) -> None:
        """The rank has done its work and written its records."""
        struct.pack_into("<q", self._map, self._offset + STATE_OFFSET, State.FINISHED)


def create(folder: Path, ranks: int, elsewhere: Collection[int] = ()) -> None:
    """Empty slots for so many ranks. elsewhere: those that run on other machines."""
    slots = bytearray(SLOT_BYTES * ranks)
    for rank in elsewhere:
        struct.pack_into("<q", slots, rank * SLOT_BYTES + STATE_OFFSET, State.ELSEWHERE)
    (folder / FILE).write_bytes(slots)


def read(folder: Path) -> list[Status]:
    """All slots, by rank."""
    raw = (folder / FILE).read_bytes()
    return [_slot(raw, rank) for rank in range(len(raw) // SLOT_BYTES)]


def _slot(raw: bytes, rank: int) -> Status:
    pid, state, done, waiting, since, line, file, activity = LAYOUT.unpack_from(raw, rank * SLOT_BYTES)
    place = f"{_text(file)}:{line}" if line else ""
    return Status(rank, pid, State(state), done, bool(waiting), since, place, _text(activity))


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode(errors="replace")
