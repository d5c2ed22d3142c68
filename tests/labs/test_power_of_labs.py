"""A sample of each lab's mutants is caught; `distsim lab power` tries all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from distsim.grading.lab import all_labs

LABS = Path(__file__).parents[2] / "labs"
SAMPLE = 5


@pytest.mark.real
@pytest.mark.more
@pytest.mark.parametrize("lab", [lab.number for lab in all_labs(LABS)])
def test_a_check_that_fits_catches_each_mutant_of_a_sample(lab: str) -> None:
    command = [sys.executable, "-m", "distsim", "lab", "power", lab, "--sample", str(SAMPLE), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr + done.stdout
    outcomes = json.loads(done.stdout)["outcomes"]
    assert len(outcomes) == SAMPLE
    assert [one for one in outcomes if one["outcome"] not in ("killed", "equivalent", "allowed")] == []
