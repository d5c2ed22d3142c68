"""Every test here leaves no process and no file of a run behind, however the run ended."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from distsim.runtime.launch import fork_client
from distsim.runtime.launch.fork_server import NO_RUN
from distsim.runtime.launch.lifeline import RUN_VARIABLE

MARK = "DISTSIM_TEST_MARK"


def _marked(mark: str) -> list[psutil.Process]:
    """The living processes that were started with this mark in their environment, but this process's fork server."""
    found = []
    for process in psutil.process_iter():
        try:
            shown = process.environ()
            server = shown.get(RUN_VARIABLE) == NO_RUN and process.ppid() == os.getpid()
            if process.status() != psutil.STATUS_ZOMBIE and shown.get(MARK) == mark and not server:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.fixture(scope="module")
def name() -> str:
    """The mark of a module's tests, whose runs share a fork server: a forked process shows the server's environment."""
    fork_client.end()
    return uuid.uuid4().hex


@pytest.fixture(autouse=True)
def mark(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A mark on all processes of this test's runs. Checks afterwards that no process and no run's folder remain."""
    monkeypatch.setenv(MARK, name)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield name
    left = _marked(name)
    descriptions = [" ".join(process.cmdline()) for process in left]
    for process in left:
        process.kill()
    assert not descriptions, "processes of the run are left"
    assert not list(tmp_path.glob("distsim-run-*")), "the run's folder is left"
    assert not list(tmp_path.glob("torchelastic_*")), "torchrun's own folder is left"


@pytest.fixture
def processes_left(mark: str) -> Callable[[], int]:
    """Tells how many processes of this test live."""
    return lambda: len(_marked(mark))
