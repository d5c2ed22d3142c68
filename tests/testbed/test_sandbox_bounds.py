"""What a body may print and write, and what an sandbox takes and leaves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from distsim.errors import InputError, RunError
from distsim.testbed.capped_output import Capped
from distsim.testbed.process_end import ProcessEnd
from distsim.testbed.sandbox import Limits, Sandbox
from tests.testbed.confined import MEBIBYTE, TRUST, answer_of, confining, traces

pytestmark = pytest.mark.usefixtures("nothing_left")


@TRUST
def test_a_gigabyte_of_output_is_read_with_a_cap(folder: Path, trusted: bool) -> None:
    def talk() -> None:
        for _ in range(1024):
            os.write(1, b"x" * MEBIBYTE)

    with Sandbox.start([talk], folder=folder, trusted=trusted) as sandbox:
        output = Capped(sandbox.outputs[0], bound_bytes=8 * MEBIBYTE)
        output.read_all()
        assert output.too_much
        assert sandbox.wait(0) == [None]
    assert 8 * MEBIBYTE < output.total_bytes <= 9 * MEBIBYTE
    assert output.text == "x" * 2**16 + f"\n... and {output.total_bytes - 2**16} more bytes"


@confining
def test_the_writable_space_is_bound(folder: Path) -> None:
    def fill(place: str) -> int:
        written = 0
        try:
            for number in range(100):
                written += Path(place, f"file{number}").write_bytes(bytes(MEBIBYTE))
        except OSError:
            return written // MEBIBYTE
        return written // MEBIBYTE

    for place in (".", "/dev/shm"):
        assert 6 <= int(answer_of(lambda place=place: fill(place), folder, limits=Limits(file_bytes=8 * MEBIBYTE))) <= 8


@TRUST
def test_a_folder_that_is_too_large_is_refused(folder: Path, trusted: bool) -> None:
    with pytest.raises(InputError, match=r"limits\.file_bytes = 10\. Cure: "):
        Sandbox.start([int], folder=folder, names=["tasks.py"], limits=Limits(file_bytes=10), trusted=trusted)


@confining
def test_a_refusal_of_the_kernel_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distsim.testbed.linux_calls.NEW_USER", 0x1)  # no such namespace
    with pytest.raises(RunError, match=r"could not be confined: .*unshare: Invalid argument"):
        Sandbox.start([int], folder=folder)


@TRUST
def test_many_runs_leave_nothing(folder: Path, trusted: bool, whole: Callable[[int, int], int]) -> None:
    before = traces()
    for _ in range(whole(8, 50)):
        with Sandbox.start([int, int], folder=folder, trusted=trusted) as sandbox:
            assert sandbox.wait(60.0) == [ProcessEnd(code=0)] * 2
    assert traces() == before


@confining
def test_an_enclosure_is_soon_made(folder: Path) -> None:
    """Four empty bodies take less than 100 ms beside the 12 forks that they need of this process."""

    def seconds(work: Callable[[], object]) -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    def forks() -> None:
        for _ in range(12):
            if (pid := os.fork()) == 0:
                os._exit(0)
            os.waitpid(pid, 0)

    def run() -> None:
        with Sandbox.start([int] * 4, folder=folder) as sandbox:
            assert sandbox.wait(60.0) == [ProcessEnd(code=0)] * 4

    runs, of_forks = [], []
    for _ in range(20):  # again where other programs took the machine for a moment
        runs.append(seconds(run))
        of_forks.append(seconds(forks))
        if min(runs) - min(of_forks) < 0.1:
            break
    assert min(runs) - min(of_forks) < 0.1
