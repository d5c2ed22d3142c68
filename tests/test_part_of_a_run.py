"""A part of a run is never taken for the whole run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import distsim
from distsim.cli.main import distsim as command
from distsim.critical_path import critical_path
from distsim.errors import InputError
from distsim.figures import SpeedUps, timeline, utilization
from distsim.figures.catalogue import KINDS
from distsim.learning.updates import recorded_updates
from distsim.metrics import summary, worker_seconds
from distsim.trace import Trace

START, END = 0.0737, 0.2041
OF_A_RUN: dict[str, Callable[[Trace], Any]] = {
    "summary": summary,
    "compare": lambda trace: distsim.compare(trace, trace),
    "critical path": critical_path,
    "utilization": utilization,
    "replay": recorded_updates,
    "speed-ups": lambda trace: SpeedUps.of_traces("ring", [trace]),
}


@pytest.fixture(scope="module")
def whole() -> Trace:
    return distsim.simulate(distsim.example("backup_server"))


@pytest.mark.parametrize("name", OF_A_RUN)
def test_what_is_said_of_a_run_is_not_said_of_a_part(whole: Trace, name: str) -> None:
    with pytest.raises(InputError, match=r"73\.7 ms to 204 ms.*part of a run.* Cure: take the trace of the whole run"):
        OF_A_RUN[name](whole.between(START, END))


def test_seconds_of_a_part_are_those_within_it(whole: Trace) -> None:
    """Cut the run at two times: the parts' seconds add up to the run's."""
    total = whole.total_seconds
    cuts = [0.0, START, END, total]
    parts = [worker_seconds(whole.between(*cuts[number : number + 2])) for number in range(3)]
    for part, seconds in worker_seconds(whole).items():
        assert np.sum([found[part] for found in parts], axis=0) == pytest.approx(seconds, abs=1e-12)


def test_a_timeline_tells_the_shares_of_the_part(whole: Trace) -> None:
    part = whole.between(START, END)
    [row] = timeline(part).table
    assert row["total (s)"] == pytest.approx(END - START)
    seconds = worker_seconds(part)["compute"].sum()
    assert row["compute (%)"] == pytest.approx(100 * seconds / (END - START) / whole.workers)


@pytest.mark.parametrize("kind", ["timeline", "traffic", "staleness", "stragglers"])
def test_the_command_says_that_it_draws_a_part(whole: Trace, kind: str, tmp_path: Path) -> None:
    assert KINDS[kind].of_files([whole], {}).summary[:6] != "A part"
    whole.between(START, END).save(tmp_path / "part.npz")
    drawn = CliRunner().invoke(command, ["figure", kind, str(tmp_path / "part.npz"), "-o", str(tmp_path / "out.html")])
    assert drawn.exit_code == 0, drawn.output
    assert "A part of the run, from 73.7 ms to 204 ms. " in drawn.output
