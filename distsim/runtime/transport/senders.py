"""Sends without making the caller wait: a thread for each target rank.

gloo blocks the sending thread while it copies a message into the system's buffers, also in a send that should not wait.
If one thread sent all answers, they would leave one after the other, always in the same order. With a thread for each
rank they share the up-link.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from queue import SimpleQueue

from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.messages import Message


class Sending:
    """A message that is to be sent."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._gone = threading.Event()

    def gone(self) -> None:
        """Called when the message has left."""
        self._gone.set()

    @property
    def left(self) -> bool:
        """Whether the message has left."""
        return self._gone.is_set()

    def wait(self) -> None:
        """Returns when the message has left. Then its buffer may be used again."""
        self._gone.wait()


class Senders:
    """Sends messages to one rank in the order in which they were given, and to different ranks at the same time.

    An error in a thread ends the rank, as `rank_context` does with every thread.
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
        """Sends a message, which must not change until it has left."""
        sending = Sending(message)
        self._queues[rank].put(sending)
        return sending

    def close(self) -> None:
        """Returns when all messages have left and the threads have ended."""
        for queue in self._queues.values():
            queue.put(None)
        for thread in self._threads:
            thread.join()


def _send(channel: Channel, queue: SimpleQueue[Sending | None]) -> None:
    while (sending := queue.get()) is not None:
        channel.send(sending.message)
        sending.gone()
