"""How a body ends, whatever it does."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from distsim.testbed.process_end import OUT_OF_MEMORY, ProcessEnd
from distsim.testbed.sandbox import Limits, Sandbox
from tests.testbed.confined import MEBIBYTE, TRUST, awaited, enclosed

pytestmark = pytest.mark.usefixtures("nothing_left")


@TRUST
def test_endings_are_reported(folder: Path, trusted: bool) -> None:
    def fails() -> None:
        raise ValueError("wrong chunk")

    found = enclosed(
        int, lambda: os._exit(0), lambda: sys.exit(3), lambda: sys.exit("a word"), fails, os.abort,
        lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os.kill(os.getpid(), signal.SIGTERM),
        lambda: print(ctypes.string_at(0)), folder=folder, trusted=trusted,
    )  # fmt: skip
    assert [ending for ending, _ in found] == [
        *(ProcessEnd(code=code) for code in (0, 0, 3, 1, 1)),
        *(
            ProcessEnd(signal=int(number))
            for number in (signal.SIGABRT, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)
        ),
    ]
    assert found[3][1] == "a word\n"
    assert found[4][1].endswith("ValueError: wrong chunk\n")


@TRUST
def test_an_endless_loop_is_killed(folder: Path, trusted: bool) -> None:
    def endless() -> None:
        print("begun")
        while True:
            pass

    with Sandbox.start([endless, int], folder=folder, trusted=trusted) as sandbox:
        assert os.read(sandbox.outputs[0], 100) == b"begun\n"
        assert awaited(lambda: sandbox.wait(0.05)[1] == ProcessEnd(code=0))
        assert sandbox.wait(0.05) == [None, ProcessEnd(code=0)]
        sandbox.kill()
        assert sandbox.endings == [ProcessEnd(signal=signal.SIGKILL), ProcessEnd(code=0)]
        assert not any(map(psutil.pid_exists, sandbox.pids))


@TRUST
def test_processor_time_is_bound(folder: Path, trusted: bool) -> None:
    def endless() -> None:
        while True:
            pass

    ((ending, _),) = enclosed(endless, folder=folder, limits=Limits(cpu_seconds=1), trusted=trusted)
    assert str(ending) == "used more processor time than it may (SIGXCPU)"


@TRUST
def test_memory_is_bound(folder: Path, trusted: bool) -> None:
    def private() -> None:
        print(len(bytearray(8 * 2**30)))

    def shared() -> None:
        print(len(mmap.mmap(-1, 8 * 2**30)))

    def spread() -> None:
        with open(os.memfd_create("large"), "wb") as file:
            for _ in range(1000):
                file.write(bytes(MEBIBYTE))

    first, second, third = enclosed(private, shared, spread, folder=folder, trusted=trusted)
    assert first[0] == ProcessEnd(code=OUT_OF_MEMORY)
    assert str(first[0]) == "exit code 71 (out of memory)"
    assert second[0] == ProcessEnd(code=1)
    assert "Cannot allocate memory" in second[1]
    assert "File too large" in third[1]
