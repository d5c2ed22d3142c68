"""The channel between two ranks: the network, or a shared buffer where both ranks are on one host."""

from __future__ import annotations

from distsim.runtime.recording.tally import Tally
from distsim.runtime.transport import backend
from distsim.runtime.transport.messages import Message, Tag


class Channel:
    """Sends to one rank and receives from it.

    outgoing, incoming: where the numbers lie if the two ranks share memory. Then only headers travel, and nothing is
    counted, since the numbers cross no network.
    """

    def __init__(
        self, rank: int, tally: Tally, tag: Tag = Tag.TRAINING, *,
        outgoing: Message | None = None, incoming: Message | None = None,
    ) -> None:  # fmt: skip
        self.rank = rank
        self._tally = tally
        self._tag = tag
        self._outgoing = outgoing
        self._incoming = incoming

    def send(self, message: Message) -> None:
        """Returns when the last byte has left, which needs the other rank to be ready to receive."""
        carried = message.carried_bytes
        if carried and self._outgoing is None:
            backend.send(message.tensor, self.rank, self._tag)
            self._tally.sent(self.rank, carried)
            return
        if carried and self._outgoing is not None and message is not self._outgoing:
            self._outgoing.payload.copy_(message.payload)
        backend.send(message.header, self.rank, self._tag)

    def receive(self, message: Message) -> None:
        """Returns when the next message has arrived."""
        backend.receive(message.tensor if self._incoming is None else message.header, self.rank, self._tag)
        self.arrived(message)

    def arrived(self, message: Message) -> None:
        """Counts or copies a message from this rank, after a receive here or a receive from any rank."""
        if not message.carried_bytes:
            return
        if self._incoming is None:
            self._tally.received(self.rank, message.carried_bytes)
        else:
            message.payload.copy_(self._incoming.payload)
