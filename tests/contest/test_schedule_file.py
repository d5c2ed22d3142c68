"""A schedule from a file: it is the all-reduce that was written, or the fault is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from distsim.collectives import ScheduleError
from distsim.contest.schedule_file import read_schedule
from distsim.errors import InputError

TWO = 'chunks = 1\nrounds = [[[1, 0, 0, "add"]], [[0, 1, 0, "replace"]]]\n'


def read(tmp_path: Path, text: str, workers: int = 2) -> object:
    (tmp_path / "mine.toml").write_text(text)
    return read_schedule(tmp_path / "mine.toml", workers)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TWO + 'gate = "data"\n')
    found = read_schedule(tmp_path / "mine.toml", 2)
    assert (found.name, found.workers, found.chunks, found.gate) == ("mine", 2, 1, "data")
    assert [(one.source, one.target, one.chunk, one.reduce) for _, one in found.transfers()] == [
        (1, 0, 0, True), (0, 1, 0, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("chunks = 1\n", "rounds is missing"),
        (TWO.replace("chunks = 1", "chunks = 0"), "chunks = 0"),
        (TWO + 'gate = "open"\n', "gate = 'open'"),
        (TWO + "speed = 2\n", "speed = 2: is not a key"),
        (TWO.replace('[1, 0, 0, "add"]', "[1, 0, 0]"), "rounds.0.0"),
        (TWO.replace('"add"', '"sum"'), "rounds.0.0.3"),
        (TWO.replace('[1, 0, 0, "add"]', '["add", 1, 0, 0]'), "must be source, target, chunk"),
        (TWO.replace("[1, 0, 0", "[-1, 0, 0"), "rounds.0.0.0"),
        (TWO.replace("[1, 0, 0", "[1.5, 0, 0"), "rounds.0.0.0"),
        ("chunks = [", "is not TOML"),
    ],
)
def test_what_is_no_schedule_is_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('chunks = 1\nrounds = [[[0, 1, 0, "replace"]]]\n', "lacks the part of worker"),
        (TWO.replace("rounds = [", 'rounds = [[[1, 0, 0, "add"]], '), "is added twice"),
        (TWO.replace("[1, 0, 0", "[1, 0, 1"), "chunk = 1"),
        (TWO.replace("[1, 0, 0", "[7, 0, 0"), "7"),
        ("chunks = 1\nrounds = []\n", "lacks the part of worker"),
    ],
)
def test_bytes_that_nobody_sent_are_refused(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match=told):
        read(tmp_path, text)


def test_three_workers_need_more_than_two(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="worker"):
        read(tmp_path, TWO, workers=3)
