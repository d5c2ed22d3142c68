"""Limits on what confined code may use of the machine; the kernel enforces them for each process."""

from __future__ import annotations

import dataclasses
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

from distsim.errors import InputError


@dataclass(frozen=True)
class Limits:
    """Limits of one rank.

    memory_bytes: address space beyond that of the process when the rank begins, for each process.
        An absolute limit would be of no use: a process with torch maps far more memory than it touches.
    processes: processes and threads at one time. It holds only where the rank is confined.
    file_bytes: size of the writable space, of the shared memory, and of each file.
    cpu_seconds: processor time, for each process.
    open_files: descriptors, for each process.

    >>> Limits(processes=8).processes
    8
    >>> Limits(cpu_seconds=0)
    Traceback (most recent call last):
    ...
    distsim.errors.InputError: limits.cpu_seconds = 0: must be at least 1. Cure: write a whole number, at least 1
    """

    memory_bytes: int = 4 * 2**30
    processes: int = 64
    file_bytes: int = 64 * 2**20
    cpu_seconds: int = 60
    open_files: int = 256

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if (value := getattr(self, field.name)) < 1:
                raise InputError.of(
                    f"limits.{field.name}", value, "must be at least 1", "write a whole number, at least 1"
                )

    def keep(self, *, processes: int | None) -> None:
        """Limits the calling process and all processes that it starts. The limits cannot be raised again.

        processes: how many may live at one time in its user namespace, itself included; None: no limit.
        """
        _bound(resource.RLIMIT_CORE, 0)
        _bound(resource.RLIMIT_FSIZE, self.file_bytes)
        _bound(resource.RLIMIT_NOFILE, self.open_files)
        _bound(resource.RLIMIT_CPU, self.cpu_seconds, self.cpu_seconds + 1)  # SIGXCPU can be caught
        if sys.platform == "linux":
            _bound(resource.RLIMIT_AS, _address_space_bytes() + self.memory_bytes)
        if processes is not None:
            _bound(resource.RLIMIT_NPROC, processes)


def _bound(kind: int, soft: int, hard: int | None = None) -> None:
    """Sets a limit, but keeps a lower one that already holds."""
    _, most = resource.getrlimit(kind)
    hard = soft if hard is None else hard
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))


def _address_space_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
