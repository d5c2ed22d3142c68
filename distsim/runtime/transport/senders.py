"""Sending without waiting for it: a thread for each rank that is sent to.

gloo copies a message into the system's buffers while the sender stands there, also where it is told not to wait. Sent
by one thread, answers would leave one after the other, the first workers always first. Threads share the channel out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from queue import SimpleQueue

from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.messages import Message


class Sending:
    """A message that is to leave."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._gone = threading.Event()

    def gone(self) -> None:
        """It has left."""
        self._gone.set()

    @property
    def left(self) -> bool:
        """Whether it has."""
        return self._gone.is_set()

    def wait(self) -> None:
        """Returns when it has left, and its buffer may be used again."""
        self._gone.wait()


class Senders:
    """Sends each rank its messages in the order in which they were given, and different ranks theirs at once.

    An error ends the thread that it happens in, and by `seat` the rank.
    """

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._queues: dict[int, SimpleQueue[Sending | None]] = {}
        self._threads = []
        for channel in channels:
            queue = self._queues[channel.rank] = SimpleQueue()
            thread = threading.Thread(target=_send, args=(channel, queue), name=f"to rank {channel.rank}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def send(self, rank: int, message: Message) -> Sending:
        """Sends a message, which must stay as it is until it has left."""
        sending = Sending(message)
        self._queues[rank].put(sending)
        return sending

    def close(self) -> None:
        """Returns when all messages have left; the threads have ended then."""
        for queue in self._queues.values():
            queue.put(None)
        for thread in self._threads:
            thread.join()


def _send(channel: Channel, queue: SimpleQueue[Sending | None]) -> None:
    while (sending := queue.get()) is not None:
        channel.send(sending.message)
        sending.gone()
