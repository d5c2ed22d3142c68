"""What passes between a rank and the switch: msgpack frames that may hold numpy arrays, and never code.

A frame is its length in four bytes, big-endian, and one value. Whoever reads a frame from a rank trusts nothing in it:
only values and arrays of plain numbers can come out, whatever was sent.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np

ARRAY = 1
LENGTH = struct.Struct(">I")
MOST_BYTES = 256 * 2**20
DTYPES = frozenset({"|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"})


class FrameError(ValueError):
    """What came is no frame of ours."""


def pack(value: object) -> bytes:
    """The frame of nested dicts, lists, texts, numbers, None and arrays.

    >>> [found] = Frames().feed(pack({"weights": np.zeros(3)}))
    >>> found["weights"].tolist()
    [0.0, 0.0, 0.0]
    """
    body: bytes = msgpack.packb(value, default=_array, use_bin_type=True)
    if len(body) > MOST_BYTES:
        raise FrameError(f"a frame of {len(body)} bytes; at most {MOST_BYTES} pass")
    return LENGTH.pack(len(body)) + body


class Frames:
    """Cuts a stream of bytes into the values of its frames."""

    def __init__(self) -> None:
        self._left = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The values that are complete with `data`. Raises FrameError where they are none of ours."""
        self._left += data
        while len(self._left) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._left)
            if size > MOST_BYTES:
                raise FrameError(f"a frame of {size} bytes; at most {MOST_BYTES} pass")
            if len(self._left) < LENGTH.size + size:
                return
            body = bytes(self._left[LENGTH.size : LENGTH.size + size])
            del self._left[: LENGTH.size + size]
            yield _unpacked(body)


def send(channel: socket.socket, value: object) -> None:
    """Sends one frame over a blocking socket."""
    channel.sendall(pack(value))


def receive(channel: socket.socket) -> Any:
    """The next frame of a blocking socket. Raises EOFError where the other side has gone."""
    (size,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
    return _unpacked(_exactly(channel, size))


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = channel.recv_into(view)
        if got == 0:
            raise EOFError("the other side has closed the channel")
        view = view[got:]
    return bytes(data)


def _array(value: object) -> msgpack.ExtType:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a {type(value).__name__} cannot pass; dicts, lists, texts, numbers, None and arrays can")
    if value.dtype.str not in DTYPES:
        raise TypeError(f"an array of {value.dtype} cannot pass")
    head = msgpack.packb([value.dtype.str, list(value.shape)])
    return msgpack.ExtType(ARRAY, LENGTH.pack(len(head)) + head + np.ascontiguousarray(value).tobytes())


def _unpacked(body: bytes) -> Any:
    try:
        return msgpack.unpackb(body, ext_hook=_of_extension, strict_map_key=False, raw=False)
    except (ValueError, TypeError, msgpack.UnpackException, struct.error, RecursionError) as error:
        raise FrameError(f"no frame of ours: {error}") from None


def _of_extension(code: int, data: bytes) -> np.ndarray[Any, Any]:
    if code != ARRAY:
        raise FrameError(f"extension {code}")
    (size,) = LENGTH.unpack_from(data)
    dtype, shape = msgpack.unpackb(data[LENGTH.size : LENGTH.size + size])
    if dtype not in DTYPES or not all(isinstance(length, int) and length >= 0 for length in shape):
        raise FrameError("an array of no plain numbers")
    return np.frombuffer(data[LENGTH.size + size :], dtype=dtype).reshape(shape).copy()
