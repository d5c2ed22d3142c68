"""Ends every process of a run: children, their children, and processes that have left the tree."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import psutil

from distsim.runtime.launch.lifeline import RUN_VARIABLE

GONE = (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied, ProcessLookupError, PermissionError)


def of_run(run_id: str, groups: Iterable[int] = (), since: float = 0.0) -> list[psutil.Process]:
    """The living processes that carry the run's id in their environment, or belong to one of these process groups.

    since: seconds since the epoch. An older process in such a group only has a number that is used again.
    """
    groups = frozenset(groups)
    return [process for process in psutil.process_iter() if _belongs(process, run_id, groups, since)]


def _belongs(process: psutil.Process, run_id: str, groups: frozenset[int], since: float) -> bool:
    if process.pid == os.getpid():
        return False
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if os.getpgid(process.pid) in groups and process.create_time() >= since:
            return True
        return process.environ().get(RUN_VARIABLE) == run_id
    except (*GONE, OSError):
        return False


def end(run_id: str, groups: Iterable[int] = (), since: float = 0.0, *, grace_seconds: float = 0.5) -> None:
    """Ends all processes of the run: SIGTERM, a short grace, then SIGKILL until none is left (3 s at most)."""
    groups = frozenset(groups)
    found = of_run(run_id, groups, since)
    _signal(found, signal.SIGTERM)
    psutil.wait_procs(found, timeout=grace_seconds if found else 0)
    give_up = time.monotonic() + 3.0
    while (found := of_run(run_id, groups, since)) and time.monotonic() < give_up:
        _signal(found, signal.SIGKILL)
        psutil.wait_procs(found, timeout=0.2)


def _signal(found: list[psutil.Process], number: signal.Signals) -> None:
    for process in found:
        try:
            process.send_signal(number)
        except GONE:
            continue


def abandon(folder: Path | None = None) -> NoReturn:
    """Ends this process and all below it, since the launching process is gone. folder: the run's, removed as well."""
    below = psutil.Process().children(recursive=True)
    _signal(below, signal.SIGKILL)
    give_up = time.monotonic() + 10.0  # removing hundreds of files can take seconds on a busy disk
    while folder is not None and folder.exists() and time.monotonic() < give_up:
        if any(map(_lives, below)):
            time.sleep(0.01)
        else:
            shutil.rmtree(folder, ignore_errors=True)  # fails while a rank that has left the tree still writes a file
    os._exit(128 + signal.SIGKILL)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except GONE:
        return False
