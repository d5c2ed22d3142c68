"""Linux system calls that Python's standard library lacks. Each raises OSError with the name of the call."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import socket
import struct
from functools import cache

NEW_USER, NEW_MOUNT, NEW_PID, NEW_NET, NEW_IPC, NEW_UTS = (
    0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000,
)  # fmt: skip
READ_ONLY, NO_SET_ID, NO_DEVICES = 1, 2, 4  # of a mount
_BIND, _RECURSIVE, _PRIVATE = 1 << 12, 1 << 14, 1 << 18
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_SETATTR = 442  # one number on all architectures
_DETACH = 2
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1
_DEATH_SIGNAL, _DUMPABLE, _DROP_BOUND, _SUBREAPER, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 4, 24, 36, 38, 47
_CLEAR_ALL_AMBIENT = 4
_CAPABILITY_VERSION = 0x20080522
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_COLLAPSE = 25


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc(), name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(namespaces: int) -> None:
    """Moves the calling process into new namespaces of these kinds."""
    _call("unshare", namespaces)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    _call("mount", *texts[:3], ctypes.c_ulong(flags), texts[3])


def mount_new(kind: str, target: str, options: str | None = None) -> None:
    """Mounts a new file system of a kind, such as tmpfs or proc."""
    _mount(kind, target, kind, NO_SET_ID | NO_DEVICES, options)


def mount_again(source: str, target: str) -> None:
    """Mounts a folder or file, with all mounts below it, at a second place."""
    _mount(source, target, None, _BIND | _RECURSIVE)


def change_root(folder: str) -> None:
    """Makes a mounted folder the root folder, and detaches all mounts outside of it. The current folder is then /."""
    os.chdir(folder)
    _call("pivot_root", b".", b".")  # the old root then lies upon the new one
    _call("umount2", b".", _DETACH)
    os.chdir("/")


def mount_apart() -> None:
    """Separates the mounts of this namespace from those of all others, in both directions."""
    _mount("none", "/", None, _PRIVATE | _RECURSIVE)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "namespace")]


def change_mount(target: str, *, add: int = 0, remove: int = 0, below: bool = False) -> None:
    """Adds and removes attributes of a mount. below: also of all mounts below it."""
    attributes = _Attributes(add, remove, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    _call(
        "syscall", ctypes.c_long(_MOUNT_SETATTR), ctypes.c_int(_AT_FDCWD), target.encode(),
        ctypes.c_uint(_AT_RECURSIVE if below else 0), ctypes.byref(attributes), size,
    )  # fmt: skip


def loopback_up() -> None:
    """Brings up the loopback interface of the network namespace, 127.0.0.1 and ::1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP_AND_RUNNING))


def _prctl(option: int, *values: int) -> None:
    _call("prctl", ctypes.c_int(option), *(ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]))


def die_with_parent(number: int) -> None:
    """Asks for this signal when the thread that forked this process ends. A change of user cancels it."""
    _prctl(_DEATH_SIGNAL, number)


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent has ended."""
    _prctl(_SUBREAPER, 1)


def show_memory(shown: bool) -> None:
    """Sets whether other processes of this user may read this one's memory, environment and descriptors."""
    _prctl(_DUMPABLE, int(shown))


def forget_keys() -> None:
    """Leaves the session keyring, which the ranks would share with their caller."""
    if number := _KEYCTL.get(platform.machine()):
        _call("syscall", ctypes.c_long(number), ctypes.c_int(_JOIN_SESSION_KEYRING), None)


def drop_rights() -> None:
    """Gives up all capabilities, and the possibility to gain any by executing a file."""
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _prctl(_AMBIENT, _CLEAR_ALL_AMBIENT)
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for capability in range(last + 1):
        _prctl(_DROP_BOUND, capability)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _call("capset", header, bytes(24))


def gather_pages(address: int, size: int) -> None:
    """Moves memory of the calling process, whole large pages, into large pages."""
    _call("madvise", ctypes.c_void_p(address), ctypes.c_size_t(size), _COLLAPSE)


def forget_environment() -> None:
    """Empties os.environ, and the memory that has held the environment since the program began."""
    os.environ.clear()
    try:
        with open("/proc/self/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except FileNotFoundError:  # not Linux
        return
    start, end = int(fields[47]), int(fields[48])  # fields 50 and 51; those after ")" begin with the third
    if start:
        ctypes.memset(start, 0, end - start)
