"""Keeps the rows of a rank in a mapped file, which outlives the rank: a killed rank leaves its records.

A row costs a copy and no system call. Space on the disk is reserved before it is written, so that a full disk raises
OSError here and does not kill the rank at a write to memory.
"""

from __future__ import annotations

import mmap
import struct
import threading
from collections import defaultdict
from pathlib import Path

CHUNK_BYTES = 64 * 1024
END = struct.Struct("<q")  # at the start of the file: the end of the last whole row
HEAD = struct.Struct("<ii")  # of a row: the number of its table, and how many values follow

Rows = dict[int, list[tuple[float, ...]]]


class Journal:
    """Appends rows, from any thread. Raises OSError where the disk is full.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Journal(Path(folder, "rows")).append(3, (1.0, 2.5))
    ...     read(Path(folder, "rows"))
    {3: [(1.0, 2.5)]}
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._room = 0
        self._end = END.size
        self._map = self._grown()
        END.pack_into(self._map, 0, self._end)

    def append(self, table: int, row: tuple[float, ...]) -> None:
        """Appends a row of table number `table`."""
        with self._lock:
            body = self._end + HEAD.size
            end = body + 8 * len(row)
            if end > self._room:
                self._map = self._grown()
            HEAD.pack_into(self._map, self._end, table, len(row))
            struct.pack_into(f"<{len(row)}d", self._map, body, *row)
            # Written last, so that a reader after a sudden death sees whole rows.
            END.pack_into(self._map, 0, end)
            self._end = end

    def _grown(self) -> mmap.mmap:
        with self._path.open("a+b", buffering=0) as file:
            room = bytes(CHUNK_BYTES)
            while room:  # a disk that is nearly full takes only a part
                room = room[file.write(room) :]
            self._room += CHUNK_BYTES
            return mmap.mmap(file.fileno(), self._room)


def read(path: Path) -> Rows:
    """The rows by table, in the order in which they came; none where the file does not exist."""
    rows: Rows = defaultdict(list)
    raw = path.read_bytes() if path.exists() else b""
    place, end = END.size, END.unpack_from(raw)[0] if len(raw) >= END.size else 0
    while place < end:
        table, values = HEAD.unpack_from(raw, place)
        rows[table].append(struct.unpack_from(f"<{values}d", raw, place + HEAD.size))
        place += HEAD.size + 8 * values
    return dict(rows)
