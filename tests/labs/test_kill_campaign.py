"""Processes that save checkpoints are killed at random moments: lab 14's solutions lose none, wrong ones do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LAB = Path(__file__).parents[2] / "labs" / "14_failures"
KILLS = 200
MORE_KILLS = 20  # of the reduced campaign
CHECK = "whole_after_a_kill"
LOSES_NOTHING = {"leaves_the_folder_open"}  # until no descriptor is left
CAUGHT = [path for path in sorted((LAB / "wrong").glob("*.py")) if CHECK in path.read_text("utf-8").partition("\n")[0]]
WRONG = [path.stem for path in CAUGHT if path.stem not in LOSES_NOTHING]
MOST_KILLS = 10 * KILLS  # a moment that is rare may take more kills


def campaign(wrong: str = "", kills: int = KILLS, lost: int = KILLS, seed: int = 0) -> dict[str, Any]:
    command = [sys.executable, str(LAB.parents[1] / "tests" / "labs" / "kill_campaign.py")]
    given = [str(LAB), wrong, str(kills), str(lost), str(seed)]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.real
@pytest.mark.parametrize(
    "kills", [pytest.param(MORE_KILLS, marks=pytest.mark.more), pytest.param(KILLS, marks=pytest.mark.thorough)]
)
def test_the_solution_loses_no_checkpoint(kills: int) -> None:
    assert campaign(kills=kills) == {"kills": kills, "lost": []}


@pytest.mark.real
@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_save_loses_one(wrong: str) -> None:
    found = campaign(wrong, kills=MOST_KILLS, lost=1)
    assert found["lost"], f"none lost in {found['kills']} kills"


def test_there_are_enough_wrong_ones() -> None:
    assert len(WRONG) >= 15
