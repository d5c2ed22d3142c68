"""Namespaces of confined code: a root folder with Python and little else, and no network.

The root folder is an allow-list in memory. It holds the interpreter, the standard library, installed packages, distsim
itself, the system's programs and shared libraries, five devices, /proc, and an empty /tmp. All of it is read-only but
/tmp and /dev/shm. Nothing else of the machine exists in it: no home, no lab, no submission, no grade, wherever it lies.

Nothing here can be undone, so the caller is always a process that was forked for it.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import distsim
from distsim import material
from distsim.testbed import linux_calls
from distsim.testbed.limits import Limits

WORK = "/tmp/work"  # the working folder of confined code
DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")
LINKS = {"/dev/fd": "", "/dev/stdin": "/0", "/dev/stdout": "/1", "/dev/stderr": "/2"}  # into /proc/self/fd
OF_A_PREFIX = ("bin", "lib", "lib32", "lib64", "libexec", "libx32", "pyvenv.cfg", "sbin")  # of /usr, of a venv
OF_THE_SYSTEM = (
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/gnu/store", "/nix/store", "/usr/share/zoneinfo",
)  # fmt: skip
LIBRARY = re.compile(r"/.*\.so(\.[\d.]+)?")
USER = 1000  # the user id that confined code sees as its own
NAME = "student"
WRITTEN = {
    "/etc/group": f"{NAME}:x:{USER}:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/passwd": f"{NAME}:x:{USER}:{USER}::{WORK}:/bin/sh\n",
}
FREE_USERS = 1_900_000_000  # where user ids begin that no distribution, container or directory service assigns
NEW_ROOT = "/tmp"  # where the root folder is built; every Linux has it


@cache
def python_places() -> tuple[str, ...]:
    """The folders and files that confined code sees: Python, its packages, distsim, programs and shared libraries."""
    paths = sysconfig.get_paths()
    prefixes = ("/", "/usr", "/usr/local", sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    found = [os.path.join(prefix, name) for prefix in prefixes for name in OF_A_PREFIX]
    found += [*OF_THE_SYSTEM, paths["stdlib"], paths["platstdlib"], *distsim.__path__]
    found += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    found += _loaded_libraries()
    both = {place for path in found for place in (os.path.abspath(path), _real(path))}
    return tuple(sorted(place for place in both if os.path.exists(_real(place))))


@cache
def _real(place: str) -> str:
    """A place without links on its way. Asked once: each run asks for all places, and each link costs some calls."""
    return os.path.realpath(place)


def place_around(path: Path) -> str | None:
    """The place of `python_places` that holds `path`; None if `path` does not exist for confined code.

    >>> place_around(Path.home()) is None
    True
    """
    real = os.path.realpath(path)
    return next((place for place in python_places() if f"{real}/".startswith(f"{_real(place)}/")), None)


def material_places() -> list[Path]:
    """The folders of the course and the labs: the repository, or the material of an installed package."""
    home = material.home()
    if home.name == material.SHIPPED or (home / "pyproject.toml").is_file():
        return [home]
    return [home / "course", home / "labs"]  # laid among other packages


def enter(limits: Limits, *, hidden: Iterable[Path], places: Iterable[str], loopback: bool) -> None:
    """Enters new namespaces. The new process namespace holds the children of this process, not the process itself.

    places: the folders and files of the machine that exist in the new root folder. hidden: folders that appear empty
    where they lie in a place; places below a hidden folder exist all the same.
    Raises OSError if the machine does not allow it.
    """
    apart = (
        linux_calls.NEW_USER
        | linux_calls.NEW_MOUNT
        | linux_calls.NEW_PID
        | linux_calls.NEW_NET
        | linux_calls.NEW_IPC
        | linux_calls.NEW_UTS
    )
    os.umask(0o022)
    if os.geteuid() == 0:
        # The limit on processes does not hold for root in any namespace. So an unused user takes root's place. Root
        # first builds the root folder, since that user cannot enter each folder above Python's.
        linux_calls.unshare(linux_calls.NEW_MOUNT)
        _change_root(hidden, places, limits)
        _become(FREE_USERS + os.getpid())
        _unshare_mapped(apart)
    else:
        _unshare_mapped(apart)
        _change_root(hidden, places, limits)
    linux_calls.change_mount("/", add=linux_calls.READ_ONLY | linux_calls.NO_SET_ID, below=True)
    for writable in ("/tmp", "/dev/shm"):
        linux_calls.change_mount(writable, remove=linux_calls.READ_ONLY)
    socket.sethostname("localhost")
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


def _loaded_libraries() -> set[str]:
    """The shared libraries of this process, which may lie anywhere."""
    maps = Path("/proc/self/maps")
    fields = [line.split(maxsplit=5) for line in maps.read_text().splitlines()] if maps.exists() else []
    return {path for *_, path in fields if LIBRARY.fullmatch(path)}


def _change_root(hidden: Iterable[Path], places: Iterable[str], limits: Limits) -> None:
    """Builds the new root folder and enters it. The old one is then out of reach, for all processes to come."""
    linux_calls.mount_apart()
    with ExitStack() as opened:
        sources: dict[str, int | None] = {}  # what is mounted where: a folder or file of the machine, or nothing
        for path in ("/proc", *DEVICES, *places):
            descriptor = sources[path] = os.open(path, os.O_PATH)
            opened.callback(os.close, descriptor)
        for path in _within(hidden, places):
            sources.setdefault(path)
        _mount_memory(NEW_ROOT, limits, "755")
        for folder in ("/dev/shm", "/etc", "/tmp"):
            os.makedirs(NEW_ROOT + folder)
        for folder in ("/dev/shm", "/tmp"):
            _mount_memory(NEW_ROOT + folder, limits, "1777")
        for path in _needed(sources):
            if (source := sources[path]) is None:
                _mount_memory(NEW_ROOT + path, limits, "755")
            else:
                _show(source, NEW_ROOT + path)
    for link, end in LINKS.items():
        os.symlink(f"/proc/self/fd{end}", NEW_ROOT + link)
    for name, text in WRITTEN.items():
        Path(NEW_ROOT + name).write_text(text)
    linux_calls.change_root(NEW_ROOT)


def _within(hidden: Iterable[Path], places: Iterable[str]) -> Iterator[str]:
    """The paths at which the hidden folders would be seen in the places."""
    for folder in map(os.path.realpath, hidden):
        for place in places:
            real = _real(place)
            if folder.startswith(f"{real}/") and os.path.isdir(folder):
                yield place + folder[len(real) :]


def _needed(sources: dict[str, int | None]) -> Iterator[str]:
    """The mounts that are needed, outer folders first: none for a place in a place, nor for nothing in nothing."""
    for path in sorted(sources):
        around = next((sources[str(folder)] for folder in Path(path).parents if str(folder) in sources), None)
        if (sources[path] is None) != (around is None):
            yield path


def _mount_memory(folder: str, limits: Limits, mode: str) -> None:
    linux_calls.mount_new("tmpfs", folder, f"size={limits.file_bytes},nr_inodes=10000,mode={mode}")


def _show(descriptor: int, place: str) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.makedirs(place, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        Path(place).touch()
    linux_calls.mount_again(f"/proc/self/fd/{descriptor}", place)
