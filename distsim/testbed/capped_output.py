"""The output of a rank: the beginning is kept, and the rest is only counted."""

from __future__ import annotations

import os


class Capped:
    """Reads a descriptor, keeps the first `kept_bytes`, and tells when more than `bound_bytes` have arrived.

    A rank that prints more than the bound should be ended, since reading on only costs time.

    >>> reading, writing = os.pipe()
    >>> _ = os.write(writing, b"abcdef"); os.close(writing)
    >>> output = Capped(reading, kept_bytes=4, bound_bytes=5)
    >>> output.read_all(); os.close(reading)
    >>> print(output.text, output.total_bytes, output.too_much)
    abcd
    ... and 2 more bytes 6 True
    """

    CHUNK_BYTES = 2**16

    def __init__(self, descriptor: int, *, kept_bytes: int = 2**16, bound_bytes: int = 2**24) -> None:
        self.descriptor = descriptor
        self.kept_bytes = kept_bytes
        self.bound_bytes = bound_bytes
        self.total_bytes = 0
        self.at_end = False
        self._kept = bytearray()

    def fileno(self) -> int:
        """The descriptor, for select and poll."""
        return self.descriptor

    @property
    def too_much(self) -> bool:
        """Whether more than `bound_bytes` have arrived."""
        return self.total_bytes > self.bound_bytes

    @property
    def text(self) -> str:
        """The kept text, and a line that says how many bytes were left out."""
        text = self._kept.decode(errors="replace")
        left_out = self.total_bytes - len(self._kept)
        return f"{text}\n... and {left_out} more bytes" if left_out else text

    def read(self) -> None:
        """Reads once, and waits if nothing has arrived yet. `at_end` is set when no writer is left."""
        chunk = os.read(self.descriptor, self.CHUNK_BYTES)
        self.at_end = not chunk
        self.total_bytes += len(chunk)
        self._kept += chunk[: max(0, self.kept_bytes - len(self._kept))]

    def read_all(self) -> None:
        """Reads until no writer is left or too much has arrived."""
        while not (self.at_end or self.too_much):
            self.read()
