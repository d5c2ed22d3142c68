"""Answers on their way to one rank, sent as far as the rank takes them: who does not read holds up nobody."""

from __future__ import annotations

import socket

from distsim.testbed import frames


class Outbox:
    """What waits at a socket that does not block.

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
        """Whether all has been sent."""
        return not self._left

    def add(self, value: object) -> None:
        """Sends it, or what the socket takes of it. Raises FrameError where it is too large, OSError where it is shut.

        Only into an empty box: whoever asks has taken the answer before.
        """
        assert self.empty
        self._left = memoryview(frames.pack(value))
        self.send()

    def send(self) -> None:
        """Sends on. Raises OSError where the socket is shut."""
        try:
            while self._left:
                self._left = self._left[self._channel.send(self._left) :]
        except BlockingIOError:
            return  # the rest goes when the socket takes more
