"""Whether ranks can reach each other. The first one offers, tells so, and waits; then the second one seeks."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distsim.testbed.process_end import ProcessEnd
from tests.testbed.confined import TRUST, confining, enclosed, say

pytestmark = pytest.mark.usefixtures("nothing_left")


def _meet(offer: Callable[[], object], seek: Callable[[], object], folder: Path, **how: Any) -> str:
    ready_here, ready_there = socket.socketpair()
    done_here, done_there = socket.socketpair()

    def offers() -> None:
        try:
            kept = offer()
        finally:  # or the other one would wait for ever
            ready_here.send(b"1")
        done_there.recv(1)
        del kept

    def seeks() -> None:
        ready_there.recv(1)
        say(seek)()
        done_here.send(b"1")

    with ready_here, ready_there, done_here, done_there:
        keep = [[ready_here.fileno(), done_there.fileno()], [ready_there.fileno(), done_here.fileno()]]
        (first, text), (_, found) = enclosed(offers, seeks, folder=folder, keep=keep, **how)
    assert first == ProcessEnd(code=0), text
    return found.rstrip("\n")


def _listen(family: int, address: Any) -> socket.socket:
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    return listener


def _connect(family: int, address: Any) -> str:
    with socket.socket(family) as connection:
        connection.settimeout(2)
        connection.connect(address)
        return "reached"


def _system_v(flags: int) -> Callable[[], str]:
    def get() -> str:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.shmget(4711, 100, flags) < 0:
            raise OSError(ctypes.get_errno(), "shmget")
        return "reached"

    return get


WAYS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "file": (lambda: Path("note").write_text("x"), lambda: Path("note").exists() and "reached"),
    "temporary file": (lambda: Path("/tmp/note").write_text("x"), lambda: Path("/tmp/note").exists() and "reached"),
    "tcp": (
        lambda: _listen(socket.AF_INET, ("127.0.0.1", 4711)),
        lambda: _connect(socket.AF_INET, ("127.0.0.1", 4711)),
    ),
    "abstract socket": (lambda: _listen(socket.AF_UNIX, "\0meet"), lambda: _connect(socket.AF_UNIX, "\0meet")),
    "socket in a folder": (
        lambda: _listen(socket.AF_UNIX, "/tmp/meet"),
        lambda: _connect(socket.AF_UNIX, "/tmp/meet"),
    ),
    # Where shm_open looks. Python's class for it needs a process of its own, whose descriptor may be closed here.
    "shared memory": (
        lambda: Path("/dev/shm/meet").write_text("x"),
        lambda: Path("/dev/shm/meet").exists() and "reached",
    ),
    "system V": (_system_v(0o1666), _system_v(0)),
    "process": (lambda: None, lambda: len([n for n in os.listdir("/proc") if n.isdigit()]) > 2 and "reached"),
}


@confining
@pytest.mark.parametrize("way", WAYS)
def test_private_ranks_cannot_meet(folder: Path, way: str) -> None:
    assert _meet(*WAYS[way], folder, private=False, loopback=True) == "reached"  # or the test has no power
    assert _meet(*WAYS[way], folder, private=True, loopback=True) != "reached"


@confining
@pytest.mark.parametrize("name", ["mem", "environ", "maps", "fd"])
def test_ranks_that_share_cannot_read_each_others_memory(folder: Path, name: str) -> None:
    def look() -> list[str]:
        others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
        assert others
        found = []
        for pid in others:
            try:
                found.append(str(os.listdir(f"/proc/{pid}/fd") if name == "fd" else _beginning(f"/proc/{pid}/{name}")))
            except OSError as error:
                found.append(type(error).__name__)
        return found

    assert _meet(lambda: None, look, folder, private=False) == "['PermissionError']"


def _beginning(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(10)


@TRUST
def test_a_rank_has_the_descriptors_it_was_given_and_no_others(folder: Path, trusted: bool) -> None:
    def descriptors() -> list[int]:
        return [number for number in range(200) if _is_open(number)]

    secret = os.open(__file__, os.O_RDONLY)
    here, there = socket.socketpair()
    with here, there:
        body = say(descriptors)
        found = enclosed(body, body, folder=folder, trusted=trusted, keep=[[here.fileno()], []])
        assert [text for _, text in found] == [f"[0, 1, 2, {here.fileno()}]\n", "[0, 1, 2]\n"]
    os.close(secret)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
