"""What confined code sees of the machine: the file system read-only, homes and devices hidden, no network.

Nothing here undoes itself: all is called in a process that was forked for it.
"""

from __future__ import annotations

import os
import stat
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import distsim
from distsim.testbed import kernel
from distsim.testbed.limits import Limits

WORK = "/tmp/work"  # the working folder of confined code
HIDDEN = (  # secrets, the work of others, devices, sockets of services
    "/dev", "/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp", "/var/tmp",
)  # fmt: skip
DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")
LINKS = {"/dev/fd": "", "/dev/stdin": "/0", "/dev/stdout": "/1", "/dev/stderr": "/2"}  # into /proc/self/fd
USER = 1000  # of confined code, as it sees itself
FREE_USERS = 1_900_000_000  # a block that no distribution, container or directory gives to anybody


def python_places() -> list[str]:
    """The folders of the interpreter, of its packages and of distsim: confined code has to see them."""
    paths = sysconfig.get_paths()
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    found = [sys.prefix, sys.base_prefix, paths["stdlib"], paths["platstdlib"], *packages, *distsim.__path__]
    both = {place for path in found for place in (os.path.abspath(path), os.path.realpath(path))}
    return sorted(place for place in both if os.path.isdir(place))


def enter(limits: Limits, *, hidden: Sequence[str], places: Sequence[str], loopback: bool) -> None:
    """Leaves the caller's namespaces. The children of this process, not itself, will have their own process numbers.

    hidden: folders to be seen empty, beside HIDDEN. places: folders to be seen even below a hidden one.
    Raises OSError where the machine does not allow it.
    """
    covered = {os.path.realpath(path) for path in (*HIDDEN, *hidden)}
    apart = kernel.NEW_USER | kernel.NEW_MOUNT | kernel.NEW_PID | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_UTS
    if os.geteuid() == 0:
        # The bound on processes does not bind root, in whatever namespace: an unused user takes its place,
        # and root first opens the way to Python for that user.
        covered |= {folder for place in places for folder in _closed_above(place)}
        kernel.unshare(kernel.NEW_MOUNT)
        kernel.mount_apart()
        _cover(covered, places, limits)
        _become(FREE_USERS + os.getpid())
        _unshare_mapped(apart)
    else:
        _unshare_mapped(apart)
        kernel.mount_apart()
        _cover(covered, places, limits)
    kernel.change_mount("/", add=kernel.READ_ONLY | kernel.NO_SET_ID, below=True)
    for writable in ("/tmp", "/dev/shm"):
        kernel.change_mount(writable, remove=kernel.READ_ONLY)
    if loopback:
        kernel.loopback_up()
    kernel.forget_keys()


def own_processes() -> None:
    """To be called by the first process of the namespace: /proc shows its processes alone."""
    kernel.mount_new("proc", "/proc")


def no_more_namespaces() -> None:
    """From a further user namespace one could mount file systems without a bound."""
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    kernel.show_memory(True)  # or /proc/self would belong to root, and with it the maps of users


def _unshare_mapped(namespaces: int) -> None:
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(namespaces)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{USER} {user} 1"), ("gid_map", f"{USER} {group} 1")):
        Path("/proc/self", name).write_text(text)


def _closed_above(place: str) -> list[str]:
    """The folders on the way to `place` that only their owner may pass."""
    return [str(folder) for folder in Path(place).parents if not os.stat(folder).st_mode & stat.S_IXOTH]


def _cover(folders: set[str], places: Sequence[str], limits: Limits) -> None:
    """Lays an empty file system over each folder, and the places below it on that."""
    shown = {place: os.open(place, os.O_PATH) for place in (*places, *DEVICES)}
    for folder in sorted(folders):  # from the outside inwards
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
    kernel.mount_new("tmpfs", folder, f"size={limits.file_bytes},nr_inodes=10000,mode={mode}")


def _show(descriptor: int, place: str) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(place, exist_ok=True)
    else:
        Path(place).touch()
    kernel.mount_again(f"/proc/self/fd/{descriptor}", place)
