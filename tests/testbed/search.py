"""What a hostile rank searches for secrets: files, processes, descriptors, its environment and its memory.

A secret is a text such as SECRET-solution- with twelve hexadecimal digits. The search itself holds none.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

SECRET = re.compile(rb"SECRE[T]-(\w+)-[0-9a-f]{12}")
ROOTS = ("", "/proc/self/root", "/proc/self/cwd/../..", "/proc/1/root", "/proc/1/cwd", "/proc/2/root", "/tmp/work/..")
READ_BYTES = 2**20


def secret(kind: str) -> str:
    """A text that no other place of the machine holds."""
    return "-".join(["SECRET", kind, os.urandom(6).hex()])


def in_files(paths: Iterable[str]) -> set[str]:
    """The kinds of the secrets in these files, by each way to name a file."""
    return _kinds(_content(f"{root}{path}") for root in ROOTS for path in paths)


def in_processes() -> set[str]:
    """The kinds of the secrets in descriptors, environments and command lines, of this process and of all others."""
    found = _kinds(_content(f"/proc/self/fd/{number}") for number in range(3, 300))
    names = ("environ", "cmdline", "mountinfo", "maps", "cwd", "mem")
    found |= _kinds(_content(f"/proc/{process}/{name}") for process in _processes() for name in names)
    for process in _processes():
        with suppress(OSError):
            found |= _kinds(_content(f"/proc/{process}/fd/{name}") for name in os.listdir(f"/proc/{process}/fd"))
    return found | _kinds(f"{name}={value}".encode() for name, value in os.environ.items())


def in_memory() -> set[str]:
    """The kinds of the secrets in all of this process's own memory, also in what was freed."""
    return _kinds(_memory())


def _processes() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def _content(path: str) -> bytes:
    """The beginning of a file, or the names and contents of a folder's files; nothing where it cannot be read."""
    try:
        if os.path.isdir(path):
            inner = (f"{path}/{name}" for name in os.listdir(path))
            return b"".join(_content(name) for name in inner if os.path.isfile(name))
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:
            return file.read(READ_BYTES) or b""
    except (OSError, ValueError):
        return b""


def _memory() -> Iterator[bytes]:
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, inode, *_ = line.split()
        start, end = (int(number, 16) for number in span.split("-"))
        if rights.startswith("rw") and inode == "0" and not line.endswith("[vvar]"):
            yield ctypes.string_at(start, end - start)


def _kinds(contents: Iterable[bytes]) -> set[str]:
    return {kind.decode() for content in contents for kind in SECRET.findall(content)}
