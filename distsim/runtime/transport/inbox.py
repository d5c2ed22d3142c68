"""A server's inbox: it receives several pushes at once, or one push after the other in the order of arrival.

Both inboxes hand out one message at a time. Neither receives more from a worker until `free` has been called for that
worker's last message, because the message's buffer is in use until then.
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
    """A message that has arrived. posted_seconds: when the server was ready for it; seconds: when it was complete."""

    worker: int
    message: Message
    posted_seconds: float
    seconds: float


class Inbox(Protocol):
    """Receives the messages of all workers."""

    def get(self) -> Arrival:
        """The next message; waits until there is one."""
        ...

    def free(self, worker: int) -> None:
        """The server no longer needs the worker's last message."""
        ...


class ConcurrentInbox:
    """One thread per worker, with a receive always posted: pushes share the server's down-link."""

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
        """The worker's thread may receive the next message."""
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
    """A plain receive from any rank. Sends are rendezvous, so all other workers wait until it is their turn."""

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
        """Does nothing: `get` posts the next receive."""


def inbox(receive: str, channels: Sequence[Channel], floats: int) -> Inbox:
    """The inbox for a scenario's `receive`. channels: one to each worker, by rank."""
    return ConcurrentInbox(channels, floats) if receive == "concurrent" else FifoInbox(channels, floats)
