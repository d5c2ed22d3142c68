"""Small messages between the processes of one host. They cross no network.

A mailbox is a named pipe in the run's folder. A write of so few bytes is atomic, so many processes may write into one
mailbox.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import astuple, dataclass
from enum import IntEnum
from pathlib import Path

LAYOUT = struct.Struct("<5q")


class HostMessageKind(IntEnum):
    """The kind of a message: workers send the kinds up to GOODBYE to the work assigner, which sends the other kinds.

    The assigner answers GOODBYE with GOODBYE.
    """

    BEGIN = 1  # the worker begins its step `step`
    DONE = 2  # the worker has done item `item` of its own step
    IDLE = 3  # the worker only waits for parameters, so it may help others
    HELPED = 4  # the worker has done an item of another worker's step
    ANSWERED = 5  # the worker has new parameters, so it may begin its next step
    GOODBYE = 6  # the worker leaves
    PIECE = 7  # do this item
    ENOUGH = 8  # no item is left; of the worker's own step, `item` says how many sums helpers will send for it
    LEAVE = 9  # stop helping, and begin the next step


@dataclass(frozen=True, slots=True)
class HostMessage:
    """A message from rank `sender`, about item `item` of step `step` of worker `worker`."""

    kind: HostMessageKind
    sender: int
    worker: int = 0
    step: int = 0
    item: int = 0


class Mailbox:
    """Messages for one reader. The reader and the writers each create the mailbox under the same name."""

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / f"mailbox-{name}"
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        # Opened for reading and writing, so that opening waits for no other process.
        self._pipe = os.open(path, os.O_RDWR)

    def put(self, message: HostMessage) -> None:
        """Leaves a message for the reader."""
        os.write(self._pipe, LAYOUT.pack(*astuple(message)))

    def get(self) -> HostMessage:
        """The next message; waits until there is one."""
        kind, *about = LAYOUT.unpack(os.read(self._pipe, LAYOUT.size))
        return HostMessage(HostMessageKind(kind), *about)

    def close(self) -> None:
        """Closes this process's end."""
        os.close(self._pipe)
