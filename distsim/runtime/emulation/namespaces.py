"""Network namespaces without a name: a namespace exists while a process is in it or holds it open.

Python has these calls from 3.12 on; this module calls the C library.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NEW_NETWORK = 0x40000000  # CLONE_NEWNET
NEW_USER = 0x10000000  # CLONE_NEWUSER


def leave_the_machines() -> str:
    """Moves this process into a network namespace of its own, in which its children start.

    A process without the right to do so first becomes root of a user namespace of its own; then it must have no other
    thread. Returns the name of the right that was used. Raises OSError where the process has neither right.
    """
    try:
        _call("unshare", NEW_NETWORK)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _call("unshare", NEW_USER)
        Path("/proc/self/setgroups").write_text("deny", "ascii")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1", "ascii")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1", "ascii")
        _call("unshare", NEW_NETWORK)
        return "a user namespace"
    return "root"


def fresh() -> int:
    """Moves this process into a new network namespace. Returns a file descriptor that holds the namespace open."""
    _call("unshare", NEW_NETWORK)
    return here()


def here() -> int:
    """A file descriptor that holds the network namespace of this process open."""
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter(descriptor: int) -> None:
    """Moves this process into the network namespace that the descriptor holds open."""
    _call("setns", descriptor, NEW_NETWORK)


def path(descriptor: int) -> str:
    """The path by which other processes find a namespace that this process holds open."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def enter_path(name: str) -> None:
    """Moves this process into a network namespace that another process holds open."""
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter(descriptor)
    finally:
        os.close(descriptor)


def _call(function: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), function)
