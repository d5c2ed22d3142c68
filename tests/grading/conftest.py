"""A tiny lab, and a testbed that starts nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distsim.grading.lab import Lab

LABS = Path(__file__).parent / "labs"
SUM = LABS / "90_sum"


@dataclass
class FakeRun:
    """The parts of a run that a check reads."""

    results: list[Any]
    failure: str | None = None


@dataclass
class FakeTestbed:
    """Returns what `answer` returns, or raises its error."""

    answer: Callable[..., FakeRun]
    closed: bool = False
    asked: list[str] = field(default_factory=list)

    def run(self, function: str, arguments: list[dict[str, Any]]) -> FakeRun:
        self.asked.append(function)
        return self.answer(function, arguments)

    def draw_for(self, check: str) -> None:
        self.rng = np.random.default_rng([*check.encode()])

    def close(self) -> None:
        self.closed = True


def solved(function: str, arguments: list[dict[str, Any]]) -> FakeRun:
    """The solution's answers."""
    if function == "summed":
        total = sum(one["values"] for one in arguments)
        return FakeRun([{"values": total} for _ in arguments])
    return FakeRun([{"counts": [2, 5, 10]}])


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder of labs that a test may change."""
    shutil.copytree(LABS, tmp_path / "labs")
    return tmp_path / "labs"


@pytest.fixture
def lab(shelf: Path) -> Lab:
    """The tiny lab in that folder."""
    return Lab.at(shelf / SUM.name)
