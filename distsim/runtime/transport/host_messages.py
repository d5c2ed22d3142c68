"""Small notes between the processes of one host, on a path of their own: no network carries them.

A box is a named pipe in the run's folder. Whoever writes a note of so few bytes writes it as a whole, so many may put
notes into one box.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import astuple, dataclass
from enum import IntEnum
from pathlib import Path

NOTE = struct.Struct("<5q")


class Say(IntEnum):
    """What a note says: the upper half to the foreman, the lower half from it."""

    BEGIN = 1  # a step of one's own
    DONE = 2  # this item of it
    IDLE = 3  # nothing to do but wait for parameters
    HELPED = 4  # this item of another's step is done
    BACK = 5  # something of one's own to do again
    GOODBYE = 6
    PIECE = 7  # do this item
    ENOUGH = 8  # there is none: `item` sums will come for one's own step, or others need no help for now
    LEAVE = 9  # help no more


@dataclass(frozen=True, slots=True)
class Note:
    """say: what; sender: who; worker, step, item: about whose item of which step."""

    say: Say
    sender: int
    worker: int = 0
    step: int = 0
    item: int = 0


class NoteBox:
    """Notes for one reader; both sides make it, by the same name."""

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / f"notes-{name}"
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        # Open for both directions: opening waits for nobody.
        self._pipe = os.open(path, os.O_RDWR)

    def put(self, note: Note) -> None:
        """Leaves a note for the reader."""
        os.write(self._pipe, NOTE.pack(*astuple(note)))

    def get(self) -> Note:
        """The next note, when there is one."""
        say, *about = NOTE.unpack(os.read(self._pipe, NOTE.size))
        return Note(Say(say), *about)

    def close(self) -> None:
        """Nobody uses it any more on this side."""
        os.close(self._pipe)
