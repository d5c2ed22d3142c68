"""Puts the memory of a process into large pages, so that forking it takes a fraction of the time.

A fork copies one entry for each page of memory, and the fork server of a testbed has some fifty thousand small pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from distsim.testbed import linux_calls

PAGE_BYTES = 2**21


def gather() -> None:
    """Moves what the process has in memory of its own into large pages.

    Where the system has none (Linux before 6.1), nothing changes.
    """
    if sys.platform == "linux":
        for first, last in list(_areas(Path("/proc/self/maps").read_text())):
            with suppress(OSError):  # some areas cannot be moved
                linux_calls.gather_pages(first, last - first)


def _areas(maps: str) -> Iterator[tuple[int, int]]:
    """The whole large pages of memory that belongs to no file.

    >>> list(_areas("7f0000100000-7f0000900000 rw-p 00000000 00:00 0 "))
    [(139637978824704, 139637985116160)]
    >>> list(_areas("7f0000100000-7f0000900000 r--p 00000000 08:01 12 /usr/lib/libc.so.6"))
    []
    """
    for line in maps.splitlines():
        span, rights, _, _, node, *name = line.split()
        first, last = (int(end, 16) for end in span.split("-"))
        first, last = -(-first // PAGE_BYTES) * PAGE_BYTES, last // PAGE_BYTES * PAGE_BYTES
        if node == "0" and rights.startswith("rw") and name in ([], ["[heap]"]) and first < last:
            yield first, last
