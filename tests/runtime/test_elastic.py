"""Of two machines under one rendezvous one dies: the other goes on alone from the checkpoint, with the same batch.

The machines are two network namespaces joined by a veth pair.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.alone, pytest.mark.more, pytest.mark.iproute2]
ROOT = Path(__file__).parents[2]
NO_RIGHT = 77
PATIENCE_SECONDS = 180
STEPS, SAVED, BATCH = 40, 5, 32
MOST_SECONDS_WITHOUT_A_STEP = 60.0


@pytest.mark.parametrize("how", [pytest.param("killed", marks=pytest.mark.thorough), "cut"])
def test_the_machine_that_is_left_goes_on_alone(tmp_path: Path, how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.ranks.dying_machine", str(tmp_path), how],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    if done.returncode == NO_RIGHT:
        pytest.skip(done.stdout.strip())
    logs = "".join(log.read_text("utf-8", errors="replace") for log in sorted(tmp_path.glob("*.log")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    told = json.loads(done.stdout)
    together = [row for row in told["steps"] if row["ranks"] == 2]
    alone = [row for row in told["steps"] if row["ranks"] == 1]
    assert together + alone == told["steps"], "nobody comes back"
    assert {row["samples of each"] * row["ranks"] for row in told["steps"]} == {BATCH}
    last = together[-1]["step"]
    assert [row["step"] for row in together] == list(range(1, last + 1))
    assert [row["step"] for row in alone] == list(range(last // SAVED * SAVED + 1, STEPS + 1)), "from the checkpoint"
    weights = {row["step"]: row["weight"] for row in together}
    for row in alone:
        if row["step"] in weights:
            assert row["weight"] == pytest.approx(weights[row["step"]], rel=1e-12), "the same batch, the same update"
    assert 0.0 < alone[0]["at"] - told["died"] < MOST_SECONDS_WITHOUT_A_STEP
