"""Every test here leaves no process and no file of a run behind, however the run ended."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

MARK = "DISTSIM_TEST_MARK"


def _marked(mark: str) -> list[psutil.Process]:
    """The living processes that were started with this mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A mark on all processes of this test's runs. Checks afterwards that no process and no run's folder remain."""
    name = uuid.uuid4().hex
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
