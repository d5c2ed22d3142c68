"""A submission, and the proof that a test of the sandbox leaves nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.confined import traces


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A submission: the student's file, and a file that ranks do not get."""
    place = tmp_path / "submission"
    place.mkdir()
    (place / "tasks.py").write_text("answer = 42\n")
    (place / "checks.py").write_text("answer == 42\n")
    return place


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test leaves a child, a descriptor, a mount or a temporary folder."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = traces()
    yield
    assert traces() == before
    assert list(temporary.iterdir()) == []
