"""Answers to one rank, sent as far as its socket accepts them. A rank that does not read blocks no other rank."""

from __future__ import annotations

import socket

from distsim.testbed import frames


class Outbox:
    """The unsent bytes for a non-blocking socket.

    >>> ours, theirs = socket.socketpair()
    >>> outbox = Outbox(ours)
    >>> outbox.add("hello")
    >>> outbox.empty, frames.receive(theirs)
    (True, 'hello')
    >>> ours.close(), theirs.close()
    (None, None)
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._left = memoryview(b"")

    @property
    def empty(self) -> bool:
        """Whether all bytes have been sent."""
        return not self._left

    def add(self, value: object) -> None:
        """Sends a value, or as much of it as the socket accepts.

        Raises FrameError if the value is too large, and OSError if the socket is closed. The outbox must be empty: a
        rank asks again only after it has received the last answer.
        """
        assert self.empty
        self._left = memoryview(frames.pack(value))
        self.send()

    def send(self) -> None:
        """Sends more of the rest. Raises OSError if the socket is closed."""
        try:
            while self._left:
                self._left = self._left[self._channel.send(self._left) :]
        except BlockingIOError:
            return  # the rest follows when the socket accepts more
