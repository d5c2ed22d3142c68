"""A slow file gives its content at its pace to one reader after the other, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from distsim.errors import RunError
from distsim.runtime.slow_file import CHUNK_BYTES, slow_file

CONTENT = bytes(range(256)) * (6 * CHUNK_BYTES // 256) + b"the rest"
SECONDS = 0.2


def test_the_content_comes_again_and_again_at_its_pace() -> None:
    with slow_file(CONTENT, SECONDS) as path, path.open("rb") as file:
        assert file.read(len(CONTENT)) == CONTENT  # the writing program has begun
        start = time.monotonic()
        for _ in range(3):
            assert file.read(len(CONTENT)) == CONTENT
        assert time.monotonic() - start > 0.9 * 3 * SECONDS


def test_little_is_read_ahead_while_the_reader_does_something_else() -> None:
    with slow_file(CONTENT, SECONDS) as path, path.open("rb") as file:
        file.read(len(CONTENT))
        time.sleep(2 * SECONDS)  # a rank that computes
        start = time.monotonic()
        file.read(len(CONTENT))
        assert time.monotonic() - start > 0.6 * SECONDS  # the pipe held one chunk of seven, and another was on its way


def test_one_reader_comes_after_the_other() -> None:
    with slow_file(b"abc", 0.01) as path:
        for _ in range(3):
            with path.open("rb") as file:
                assert set(file.read(12)) == set(b"abc")


def test_nothing_is_left_however_the_block_ends() -> None:
    with pytest.raises(ZeroDivisionError), slow_file(CONTENT, SECONDS) as path:
        raise ZeroDivisionError
    assert not path.parent.exists()


def test_nothing_is_left_of_a_process_that_is_killed() -> None:
    program = (
        "from distsim.runtime.slow_file import slow_file\n"
        "with slow_file(b'abc', 0.01) as path:\n"
        "    path.open('rb').read(1)\n"  # the writing program has begun
        "    print(path, flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip()).parent
        assert folder.exists()
        process.kill()
    give_up = time.monotonic() + 20.0
    while folder.exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not folder.exists()


def test_a_program_that_ends_early_is_told() -> None:
    with pytest.raises(RunError, match="ended too early, with exit code -9"), slow_file(CONTENT, SECONDS) as path:  # noqa: PT012
        with path.open("rb") as file:
            file.read(1)
            (writer,) = (one for one in psutil.process_iter() if str(path.parent) in _command(one))
            writer.kill()
            file.read()  # until the end, which comes when the writer has gone
        os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)  # the end is known, and left for the block to find


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has gone
        return []
