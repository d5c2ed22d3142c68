"""Namespaces of confined code: it sees a read-only file system without homes and devices, and no network.

Nothing here can be undone, so the caller is always a process that was forked for it.
"""

from __future__ import annotations

import os
import stat
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import distsim
from distsim.testbed import linux_calls
from distsim.testbed.limits import Limits

WORK = "/tmp/work"  # the working folder of confined code
HIDDEN = (  # folders of secrets, of other users' files, of devices, and of sockets of services
    "/dev", "/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp", "/var/tmp",
)  # fmt: skip
DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")
LINKS = {"/dev/fd": "", "/dev/stdin": "/0", "/dev/stdout": "/1", "/dev/stderr": "/2"}  # into /proc/self/fd
USER = 1000  # the user id that confined code sees as its own
FREE_USERS = (
    1_900_000_000  # the start of a range of user ids that no distribution, container or directory service assigns
)


def python_places() -> list[str]:
    """The folders of the interpreter, its packages and distsim, which confined code must see."""
    paths = sysconfig.get_paths()
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    found = [sys.prefix, sys.base_prefix, paths["stdlib"], paths["platstdlib"], *packages, *distsim.__path__]
    both = {place for path in found for place in (os.path.abspath(path), os.path.realpath(path))}
    return sorted(place for place in both if os.path.isdir(place))


def enter(limits: Limits, *, hidden: Sequence[str], places: Sequence[str], loopback: bool) -> None:
    """Enters new namespaces. The new process namespace holds the children of this process, not the process itself.

    hidden: folders that appear empty, besides HIDDEN. places: folders that stay visible even below a hidden folder.
    Raises OSError if the machine does not allow it.
    """
    covered = {os.path.realpath(path) for path in (*HIDDEN, *hidden)}
    apart = (
        linux_calls.NEW_USER
        | linux_calls.NEW_MOUNT
        | linux_calls.NEW_PID
        | linux_calls.NEW_NET
        | linux_calls.NEW_IPC
        | linux_calls.NEW_UTS
    )
    if os.geteuid() == 0:
        # The limit on processes does not hold for root in any namespace. So an unused user takes root's place, and
        # root first makes Python's folders reachable for that user.
        covered |= {folder for place in places for folder in _closed_above(place)}
        linux_calls.unshare(linux_calls.NEW_MOUNT)
        linux_calls.mount_apart()
        _cover(covered, places, limits)
        _become(FREE_USERS + os.getpid())
        _unshare_mapped(apart)
    else:
        _unshare_mapped(apart)
        linux_calls.mount_apart()
        _cover(covered, places, limits)
    linux_calls.change_mount("/", add=linux_calls.READ_ONLY | linux_calls.NO_SET_ID, below=True)
    for writable in ("/tmp", "/dev/shm"):
        linux_calls.change_mount(writable, remove=linux_calls.READ_ONLY)
    if loopback:
        linux_calls.loopback_up()
    linux_calls.forget_keys()


def own_processes() -> None:
    """Mounts a /proc that shows only the namespace's processes. The first process of the namespace calls it."""
    linux_calls.mount_new("proc", "/proc")


def no_more_namespaces() -> None:
    """Forbids further user namespaces, in which code could mount file systems without a limit."""
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    linux_calls.show_memory(True)  # otherwise /proc/self and its user maps would belong to root


def _unshare_mapped(namespaces: int) -> None:
    user, group = os.geteuid(), os.getegid()
    linux_calls.unshare(namespaces)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{USER} {user} 1"), ("gid_map", f"{USER} {group} 1")):
        Path("/proc/self", name).write_text(text)


def _closed_above(place: str) -> list[str]:
    """The parent folders of `place` that only their owner may enter."""
    return [str(folder) for folder in Path(place).parents if not os.stat(folder).st_mode & stat.S_IXOTH]


def _cover(folders: set[str], places: Sequence[str], limits: Limits) -> None:
    """Mounts an empty file system over each folder, and shows in it the places below that folder."""
    shown = {place: os.open(place, os.O_PATH) for place in (*places, *DEVICES)}
    for folder in sorted(folders):  # outer folders first
        if folder in shown or not os.path.isdir(folder):
            continue
        writable = folder == "/tmp"
        _mount_memory(folder, limits, "1777" if writable else "755")
        for place, descriptor in shown.items():
            if place.startswith(f"{folder}/"):
                _show(descriptor, place)
    for descriptor in shown.values():
        os.close(descriptor)
    for link, end in LINKS.items():
        os.symlink(f"/proc/self/fd{end}", link)
    os.mkdir("/dev/shm")
    _mount_memory("/dev/shm", limits, "1777")


def _mount_memory(folder: str, limits: Limits, mode: str) -> None:
    linux_calls.mount_new("tmpfs", folder, f"size={limits.file_bytes},nr_inodes=10000,mode={mode}")


def _show(descriptor: int, place: str) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(place, exist_ok=True)
    else:
        Path(place).touch()
    linux_calls.mount_again(f"/proc/self/fd/{descriptor}", place)
