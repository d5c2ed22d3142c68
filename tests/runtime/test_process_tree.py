"""The end of all processes of a run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

WRITERS, FILES = 8, 200
WRITES = """
import itertools, sys, time
from pathlib import Path

folder, until = Path(sys.argv[1]), Path(sys.argv[1] + "-until")  # a moment of the clock that all processes share
for number in itertools.count():
    if until.exists() and time.monotonic() > float(until.read_text() or "inf"):
        break
    (folder / f"{sys.argv[2]}-{number % 300}").write_text("x" * 200)
"""
ABANDONS = f"""
import os, subprocess, sys, time
from pathlib import Path

from distsim.runtime.launch.process_tree import abandon

folder = Path(sys.argv[1])
for writer in range({WRITERS}):
    if sys.argv[3] == "below" or not os.fork():
        started = subprocess.Popen([sys.executable, "-c", sys.argv[2], str(folder), str(writer)])
        Path(f"{{folder}}-{{writer}}.pid").write_text(str(started.pid))
        if sys.argv[3] != "below":
            os._exit(0)  # the writer leaves the tree
while len(list(folder.iterdir())) < {FILES} or not all((folder / f"{{one}}-0").exists() for one in range({WRITERS})):
    time.sleep(0.01)
Path(sys.argv[1] + "-until").write_text(str(time.monotonic() + float(sys.argv[4])))
abandon(folder)
"""


def _abandoned(folder: Path, where: str, seconds: float) -> None:
    """A process abandons `folder`, while others write into it for so many seconds more, or until they die."""
    folder.mkdir()
    command = [sys.executable, "-c", ABANDONS, str(folder), WRITES, where, str(seconds)]
    ended = subprocess.run(command, check=False, timeout=60)
    assert ended.returncode == 137
    assert not folder.exists()
    writers = [int(file.read_text()) for file in folder.parent.glob("*.pid")]
    give_up = time.monotonic() + 30.0
    while any(map(_lives, writers)) and time.monotonic() < give_up:
        time.sleep(0.01)


def _lives(number: int) -> bool:
    try:
        return bool(psutil.Process(number).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("attempt", range(4))
def test_a_runs_folder_is_removed_though_its_ranks_write_until_they_die(tmp_path: Path, attempt: int) -> None:
    """Without the wait for their death, the folder was left in 5 of 12 attempts."""
    _abandoned(tmp_path / f"run-{attempt}", "below", 60.0)


def test_a_runs_folder_is_removed_though_ranks_that_left_the_tree_still_write(tmp_path: Path) -> None:
    """With one try to remove it, the folder was left in each attempt."""
    _abandoned(tmp_path / "run", "elsewhere", 1.0)
