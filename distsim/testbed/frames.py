"""Messages between a rank and the switch: msgpack frames that may hold numpy arrays, and never code.

A frame consists of its length, the length of its head, the head, and the bytes of its arrays one after the other. A
length has four bytes, big-endian. The head is one value, which describes each array by its type and shape. A rank may
send anything, so the reader trusts nothing: a frame yields only values and arrays of plain numbers, and they take at
most a small multiple of the memory of the bytes received.
"""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np

ARRAY = 1
LENGTH = struct.Struct(">I")
MOST_BYTES = 64 * 2**20
MOST_HEAD_BYTES = 2 * 2**20  # one byte may become an object of seventy bytes
DTYPES = frozenset({"|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"})


class FrameError(ValueError):
    """The bytes received are not a valid frame."""


def pack(value: object) -> bytes:
    """The frame of a value: nested dicts, lists, strings, numbers, None and arrays.

    >>> [found] = Frames().feed(pack({"weights": np.zeros(3)}))
    >>> found["weights"].tolist()
    [0.0, 0.0, 0.0]
    """
    arrays: list[bytes] = []

    def described(value: object) -> msgpack.ExtType:
        array = _plain(value)
        arrays.append(np.ascontiguousarray(array).tobytes())
        return msgpack.ExtType(ARRAY, msgpack.packb([array.dtype.str, list(array.shape)]))

    head: bytes = msgpack.packb(value, default=described, use_bin_type=True)
    if len(head) > MOST_HEAD_BYTES:
        raise FrameError(
            f"{len(head)} bytes outside arrays; at most {MOST_HEAD_BYTES} may be sent. Cure: send an array"
        )
    size = LENGTH.size + len(head) + sum(map(len, arrays))
    if size > MOST_BYTES:
        raise FrameError(f"a frame of {size} bytes; at most {MOST_BYTES} pass")
    return b"".join([LENGTH.pack(size), LENGTH.pack(len(head)), head, *arrays])


class Frames:
    """Cuts a stream of bytes into the values of its frames."""

    def __init__(self) -> None:
        self._left = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The values completed by `data`. Raises FrameError for bytes that are not a valid frame."""
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
    """The next frame of a blocking socket. Raises EOFError if the other side has closed it."""
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


def _plain(value: object) -> np.ndarray[Any, Any]:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, int):
        raise TypeError("an int beyond 64 bits cannot pass")
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a {type(value).__name__} cannot pass; dicts, lists, texts, numbers, None and arrays can")
    if value.dtype.str not in DTYPES:
        raise TypeError(f"an array of {value.dtype} cannot pass")
    return value


def _unpacked(body: bytes) -> Any:
    try:
        return _Reader(body).value()
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException, struct.error, RecursionError) as error:
        raise FrameError(f"not a valid frame: {error}") from None


class _Reader:
    """Reads one frame, whose arrays follow in the order of the head."""

    def __init__(self, body: bytes) -> None:
        (size,) = LENGTH.unpack_from(body)
        if size > MOST_HEAD_BYTES or LENGTH.size + size > len(body):
            raise FrameError(f"a head of {size} bytes")
        whole = memoryview(body)
        self._head, self._arrays = whole[LENGTH.size : LENGTH.size + size], whole[LENGTH.size + size :]

    def value(self) -> Any:
        value = msgpack.unpackb(
            self._head, ext_hook=self._array, strict_map_key=False, raw=False, object_hook=_of_dict, list_hook=_of_list
        )
        if self._arrays:
            raise FrameError("bytes that belong to no array")
        return value

    def _array(self, code: int, data: bytes) -> np.ndarray[Any, Any]:
        if code != ARRAY:
            raise FrameError(f"extension {code}")
        dtype, shape = msgpack.unpackb(data)
        if dtype not in DTYPES or not all(isinstance(length, int) and length >= 0 for length in shape):
            raise FrameError("an array whose type or shape is not allowed")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > len(self._arrays):
            raise FrameError("an array without its bytes")
        mine, self._arrays = self._arrays[:size], self._arrays[size:]
        return np.frombuffer(mine, dtype=dtype).reshape(shape).copy()


def _of_dict(table: dict[Any, Any]) -> dict[Any, Any]:
    _of_list(list(table.values()))
    return table


def _of_list(items: list[Any]) -> list[Any]:
    """Refuses timestamps, the only extension that msgpack decodes without asking."""
    if msgpack.Timestamp in map(type, items):
        raise FrameError("a timestamp")
    return items
