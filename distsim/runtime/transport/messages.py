"""Messages between a worker and a server: one tensor of bytes, with a header of eight words before the numbers.

gloo tells neither the length nor the kind of a message, so the header does.
"""

from __future__ import annotations

import zlib
from enum import IntEnum

import numpy as np
import torch

WORDS = 8
HEADER_BYTES = 8 * WORDS
FLOAT_BYTES = 4
PATTERN = 7


class MessageKind(IntEnum):
    """The kind of a message. Only PUSH, ANSWER and SUM carry numbers.

    THROUGH: the worker has done all its steps. GOODBYE: the worker leaves; the checksum is that of its parameters. SUM:
    the summed gradients of the pieces that one worker did for another.
    """

    PUSH = 1
    ANSWER = 2
    THROUGH = 3
    GOODBYE = 4
    SUM = 5


WITH_NUMBERS = (MessageKind.PUSH, MessageKind.ANSWER, MessageKind.SUM)


class Tag(IntEnum):
    """Messages with different tags between the same two ranks never meet."""

    TRAINING = 0
    SUMS = 1


class Message:
    """A buffer to send from or to receive into: a header of eight words, then the payload in float32.

    tensor: the `length` bytes to use, unchanged; None: new bytes, all zero.
    """

    def __init__(self, floats: int, tensor: torch.Tensor | None = None) -> None:
        # Zeroed by hand: the system maps the memory that it zeroes at its first use, which would be in the timed run.
        self.tensor = torch.empty(length(floats), dtype=torch.uint8).zero_() if tensor is None else tensor
        self.header = self.tensor[:HEADER_BYTES]
        self.payload = self.tensor[HEADER_BYTES:].view(torch.float32)
        self._words = self.tensor.numpy()[:HEADER_BYTES].view(np.int64)

    def write(
        self, kind: MessageKind, *,
        step: int = 0, version: int = 0, stop: bool = False, checksum: int = 0, items: int = 0,
    ) -> None:  # fmt: skip
        """Fills the header."""
        num_bytes = self.num_bytes if kind in WITH_NUMBERS else 0
        self._words[:7] = (kind, step, version, stop, num_bytes, checksum, items)

    @property
    def kind(self) -> MessageKind:
        """The kind of the message."""
        return MessageKind(int(self._words[0]))

    @property
    def step(self) -> int:
        """Of a push: the number of the worker's step."""
        return int(self._words[1])

    @property
    def version(self) -> int:
        """Of a push: the version that it was computed on. Of an answer: the version that it carries."""
        return int(self._words[2])

    @property
    def stop(self) -> bool:
        """Of an answer: whether the run is over."""
        return bool(self._words[3])

    @property
    def carried_bytes(self) -> int:
        """How many bytes of numbers follow the header, as the sender says."""
        return int(self._words[4])

    @property
    def expected_checksum(self) -> int:
        """Of a goodbye: the checksum of the worker's parameters."""
        return int(self._words[5])

    @property
    def items(self) -> int:
        """Of a sum: the number of its items."""
        return int(self._words[6])

    @property
    def num_bytes(self) -> int:
        """How many bytes of numbers the message has room for."""
        return FLOAT_BYTES * self.payload.numel()

    def checksum(self) -> int:
        """The checksum of the numbers."""
        return zlib.crc32(self.tensor.numpy()[HEADER_BYTES:].data)


def length(floats: int) -> int:
    """The bytes of a message with `floats` numbers."""
    return HEADER_BYTES + FLOAT_BYTES * floats


def num_floats(num_bytes: float) -> int:
    """How many float32 numbers make about `num_bytes` bytes; at least one."""
    return max(1, round(num_bytes / FLOAT_BYTES))


def pattern(floats: int) -> torch.Tensor:
    """The gradient that all workers scale: small whole numbers, so that float32 holds their sums exactly."""
    return (torch.arange(floats) % PATTERN - PATTERN // 2).to(torch.float32)
