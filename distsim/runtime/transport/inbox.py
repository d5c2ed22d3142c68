"""How a server receives: several pushes at once, or one after the other in the order of arrival.

Both hand out one message after the other, and both receive nothing more from a worker until `free` has been
called for its last message, because its buffer is in use until then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

from distsim.runtime.transport import backend
from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.messages import Message, MessageKind


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that has arrived in full. posted_seconds: when the server was ready for it; seconds: when it was in."""

    worker: int
    message: Message
    posted_seconds: float
    seconds: float


class Inbox(Protocol):
    """Where the messages of all workers come in."""

    def get(self) -> Arrival:
        """The next message, when there is one."""
        ...

    def free(self, worker: int) -> None:
        """The worker's last message has been dealt with."""
        ...


class ConcurrentInbox:
    """One thread per worker with a receive always posted: pushes share the channel in."""

    def __init__(self, channels: Sequence[Channel], floats: int) -> None:
        self._arrivals: SimpleQueue[Arrival] = SimpleQueue()
        self._freed = [threading.Semaphore(0) for _ in channels]
        for channel in channels:
            threading.Thread(
                target=self._receive, args=(channel, Message(floats)), name=f"from worker {channel.rank}", daemon=True
            ).start()

    def get(self) -> Arrival:
        """The next message."""
        return self._arrivals.get()

    def free(self, worker: int) -> None:
        """The thread may receive the next one."""
        self._freed[worker].release()

    def _receive(self, channel: Channel, message: Message) -> None:
        while True:
            posted = time.monotonic()
            channel.receive(message)
            last = message.kind is MessageKind.GOODBYE
            self._arrivals.put(Arrival(channel.rank, message, posted, time.monotonic()))
            if last:
                return
            self._freed[channel.rank].acquire()


class FifoInbox:
    """A plain receive from anybody: gloo's sends are rendezvous, so the others wait for their turn."""

    def __init__(self, channels: Sequence[Channel], floats: int) -> None:
        self._channels = channels
        self._message = Message(floats)

    def get(self) -> Arrival:
        """Receives the next message."""
        posted = time.monotonic()
        worker = backend.receive_from_any(self._message.tensor)
        self._channels[worker].arrived(self._message)
        return Arrival(worker, self._message, posted, time.monotonic())

    def free(self, worker: int) -> None:
        """Nothing to do: the next receive is posted by `get`."""


def inbox(receive: str, channels: Sequence[Channel], floats: int) -> Inbox:
    """The inbox for a scenario's `receive`. channels: to each worker, by rank."""
    return ConcurrentInbox(channels, floats) if receive == "concurrent" else FifoInbox(channels, floats)
