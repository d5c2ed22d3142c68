"""The busy program computes on the core of one rank, and never outlives its block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from distsim.errors import RunError
from distsim.runtime.busy_program import busy_program
from distsim.runtime.machine import core_of_rank, usable_cores

HELD = """
from distsim.runtime.busy_program import busy_program
with busy_program(beside=0) as program:
    print(program.pid, flush=True)
    input()
"""
PATIENCE_SECONDS = 20.0


def test_it_computes_on_the_core_of_the_rank_and_ends_with_the_block() -> None:
    with pytest.raises(ZeroDivisionError), busy_program(beside=1) as program:  # noqa: PT012
        assert _soon(lambda: os.sched_getaffinity(program.pid) == {core_of_rank(1)})
        assert _soon(lambda: sum(psutil.Process(program.pid).cpu_times()[:2]) > 0.1)
        raise ZeroDivisionError
    assert not psutil.pid_exists(program.pid)


def test_it_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        assert psutil.pid_exists(pid)
        holder.kill()
    assert _soon(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_a_program_that_ends_early_is_told() -> None:
    with (  # noqa: PT012
        pytest.raises(RunError, match="beside rank 3 ended too early, with exit code -9"),
        busy_program(beside=3) as it,
    ):
        it.send_signal(signal.SIGKILL)
        it.wait()


def test_ranks_take_turns_at_the_cores() -> None:
    cores = [core_of_rank(rank) for rank in range(2 * usable_cores())]
    assert cores[: usable_cores()] == sorted(os.sched_getaffinity(0))
    assert cores[usable_cores() :] == cores[: usable_cores()]


def _soon(holds) -> bool:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
