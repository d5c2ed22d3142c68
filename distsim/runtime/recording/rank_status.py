"""The present activity of each rank: one slot per rank in a mapped file, which outlives the rank.

A rank writes its slot at every phase, which takes some microseconds and no system call. The launching process reads the
slots for the progress of the run, and when a rank hangs or dies. A read during a write may mix two phases. That is
harmless, because messages are about ranks that stand still.
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
IMPORTING = "import torch"  # the activity of a rank until it can connect to the others
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
    ELSEWHERE = 3  # on another machine, which watches the rank


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
        """Whether the rank has finished, or is watched on another machine."""
        return self.state in (State.FINISHED, State.ELSEWHERE)


class StatusSlot:
    """A rank's own slot, for writing."""

    def __init__(self, folder: Path, rank: int) -> None:
        with (folder / FILE).open("r+b") as stream:
            self._map = mmap.mmap(stream.fileno(), 0)
        self._offset = rank * SLOT_BYTES

    def begin(self) -> None:
        """This process is the rank. From now on the launching process may ask it for its stacks."""
        LAYOUT.pack_into(
            self._map, self._offset, os.getpid(), State.RUNNING, 0, False, time.monotonic(), 0, b"", b"its start"
        )

    def doing(self, activity: str, *, waiting: bool = False, callers: int = 1) -> None:
        """The rank now does `activity`, at the line of the caller (or of a caller further up).

        waiting: whether the rank needs another rank to go on.
        """
        frame = sys._getframe(callers)
        name = frame.f_code.co_filename.rpartition(os.sep)[2]
        PHASE.pack_into(
            self._map, self._offset + PHASE_OFFSET,
            waiting, time.monotonic(), frame.f_lineno, name.encode()[:64], activity.encode()[:256],
        )  # fmt: skip

    def done(self, steps: int) -> None:
        """`steps` steps are done, all scenarios together."""
        struct.pack_into("<q", self._map, self._offset + DONE_OFFSET, steps)

    def finished(self) -> None:
        """The rank has done its work and written its records."""
        struct.pack_into("<q", self._map, self._offset + STATE_OFFSET, State.FINISHED)


def create(folder: Path, ranks: int, elsewhere: Collection[int] = ()) -> None:
    """Writes empty slots for `ranks` ranks. elsewhere: the ranks that run on other machines."""
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
