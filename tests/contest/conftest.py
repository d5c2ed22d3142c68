"""The course's own contest, and entries that a test writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from distsim.contest.problem import Problem, contest_folder

SERVER = '[policy]\nkind = "{kind}"\n\n[communication]\nkind = "parameter_server"\n'
ASYNCHRONOUS = SERVER.format(kind="asynchronous")
RING = '[policy]\nkind = "synchronous"\n\n[communication]\nkind = "ring"\n'

Write = Callable[..., Path]


@pytest.fixture(scope="session")
def problem() -> Problem:
    """The course's own contest."""
    return Problem.at(contest_folder())


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """`written(tables, code=..., **keys)` writes an entry and gives its folder."""

    def write(tables: str = RING, code: str = "", name: str = "ada", **keys: object) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        given = {"prediction": '"20 s"', "rate": "0.5"} | ({"rule": '"rule.py:Mine"'} if code else {}) | keys
        lines = [f"{key} = {value}\n" for key, value in given.items() if value is not None]
        (folder / "entry.toml").write_text("".join(lines) + tables)
        if code:
            (folder / "rule.py").write_text(code)
        return folder

    return write
