"""A sample of each lab's mutants is caught, and the labs' page has the scores of all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from distsim.grading.lab import Lab, all_labs
from distsim.grading.power.score import Trial

LABS = Path(__file__).parents[2] / "labs"
SAMPLE = 5


def scores() -> dict[str, list[int]]:
    """The numbers of mutants on the labs' page, by lab: all, killed, equivalent and allowed."""
    page = (LABS / "README.md").read_text("utf-8")
    table = page.partition("killed by fitting checks |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    return {lab: [int(number) for number in numbers[:4]] for lab, *numbers in rows}


@pytest.mark.parametrize("lab", all_labs(LABS), ids=lambda lab: lab.key)
def test_the_page_has_the_score_of_each_lab(lab: Lab) -> None:
    """A changed solution has other mutants, so its score must be found anew."""
    count, killed, equivalent, allowed = scores()[lab.key]
    trial = Trial.of(lab, [], None)
    assert count == len(trial.mutants) == killed + equivalent + allowed
    assert allowed == sum(bool(one.differs) for one in trial.named.values())
    assert equivalent + allowed == len(trial.named)


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
